/**
 * The most bytes of large emails in progress in one worker: sending needs several copies of each in
 * memory. It exceeds the 16 MB that core.large_bytes() counts for one email, so each email fits.
 */
const MAX_BYTES_IN_PROGRESS = 24 * 1024 * 1024

type WithLargeBytes = { largeBytes: number }

/** Limits the bytes of large emails that a worker has in progress. */
export function createLargeBodies() {
  let free = MAX_BYTES_IN_PROGRESS
  return {
    /** Calls `start` with all free bytes; keeps those of the started emails and frees the rest. */
    async begin<Email extends WithLargeBytes>(
      start: (free: number) => Promise<Email[]>,
    ): Promise<Email[]> {
      const offered = free
      free = 0
      let started: Email[] = []
      try {
        started = await start(offered)
        return started
      } finally {
        const used = started.reduce((bytes, { largeBytes }) => bytes + largeBytes, 0)
        free += offered - used
      }
    },
    /** Frees the bytes of an email whose attempt is over. */
    end({ largeBytes }: WithLargeBytes) {
      free += largeBytes
    },
  }
}
