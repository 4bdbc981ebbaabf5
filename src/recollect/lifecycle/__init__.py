"""How memories age: pure functions over values, with the time as an argument."""
