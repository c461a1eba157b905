"""The federation's values (seed 004): artifacts, their ids, what may be asked, how it is ranked."""
