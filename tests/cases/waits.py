"""How long tests wait for what should come soon."""

# Seconds after which it does not come: something hangs. Beside other work a process may
# take a minute to import scikit-learn, and is not to fail for that.
HANGS = 600.0
