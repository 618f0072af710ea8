"""What the tools, the benchmarks, the power cuts and the tests share."""
