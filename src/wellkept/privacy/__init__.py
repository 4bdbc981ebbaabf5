"""Privacy: whose memories there are, erasure that can be proven, the export of a person, and the audit log."""
