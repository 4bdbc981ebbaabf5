"""The stores that come with Wellkept, one module or package each."""
