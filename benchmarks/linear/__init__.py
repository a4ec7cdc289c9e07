"""Linear machines: variants of the solvers, and the rules that choose one."""
