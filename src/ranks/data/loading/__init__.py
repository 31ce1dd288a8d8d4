"""Background loading: worker processes or threads call `gather` before the rank needs the batch.

     Stream.at(i) ── pieces of i, i+1, ... ──► worker 0 ── gather(ids) ──► shared memory ─┐
          │        (the micro-batches that      worker 1 ── gather(ids) ──► shared memory ─┤
          │         the learner will ask for)   worker 2 ── gather(ids) ──► shared memory ─┤
          ▼                                                                                │
     waits for the pieces of i ◄───────────────────────────────────────────────────────────┘
          │
          ▼
     StepBatch.gather(ids) ── tensors over the shared memory; on a GPU pinned, then copied on a stream of its own

A batch is a pure function of its iteration, and a worker calls the same `gather` with the same ids as the rank
would. So neither the number of workers nor what was read ahead changes a result. The prefetcher cuts future batches
as the learner has cut the last one (`cuts.py`). What it did not foresee (smaller micro-batches after running out of
memory, a dry run on half a batch, a jump to another iteration) the rank gathers itself, or the workers do on request.

`prefetcher.py` decides what to read and waits for it. `process_workers.py` is the rank's side of the worker
processes, `server.py` starts them, `worker.py` runs in them. `thread_workers.py` has the same methods.
"""
