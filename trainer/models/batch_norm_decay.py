"""The decay of batch norm's moving averages for several replicas that move them in one update."""

from __future__ import annotations

from echoing.checks import check_integer, check_number


def batch_norm_decay_for_replicas(decay: float, replicas: int) -> float:
    """Returns the decay at which one update a step does what one update a replica does: `decay ** replicas`.

    After the Cloud TPU Inception v3 guide, section on batch normalisation. Batch norm's averages are low-pass
    filters over the moments `x` of the batches, of mean and variance alike:

        y_t = a y_(t-1) + (1 - a) x_t

    Where `n` replicas share one average and update it one after the other (the guide's GPUs), a step of all
    replicas is `n` such updates:

        y_(t+n-1) = a^n y_(t-1) + (1 - a) sum_(k=0..n-1) a^(n-1-k) x_(t+k)

    Where each replica has an average of its own and only one of them is kept (the guide's TPU cores), a step
    is a single update, with the moments `u` of that replica alone:

        z_t = b z_(t-1) + (1 - b) u_t

    so that the same decay would make the average `n` times as slow, counted in steps. If the `n` batches of a
    step have about the same moments `x`, the sum is geometric, `(1 - a) (1 + a + ... + a^(n-1)) = 1 - a^n`,
    and the first form becomes `a^n y_(t-1) + (1 - a^n) x`: the second one with `b = a^n`. At 8 replicas
    0.9997 turns into 0.9976.

    This holds as well where the moments are first averaged over the replicas, `u` being their mean: it is
    about the number of updates in a step. A decay that was tuned for one update a step needs no change.

    Args:
        decay: of one update a replica, 0 to 1.
        replicas: number of replicas that train in a step.

    Raises:
        OptionError: a value is not allowed.
    """
    check_number("batch_norm_decay", decay, minimum=0, maximum=1)
    return float(decay) ** check_integer("replicas", replicas, minimum=1)
