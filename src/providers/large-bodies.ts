/**
 * What a worker may have in hand of large bodies, as api.start_emails counts them: each is in memory
 * several times while it is sent. More than the 16 MB that core.large_bytes counts at most.
 */
const MAX_BYTES_IN_HAND = 24 * 1024 * 1024

type WithLargeBytes = { largeBytes: number }

/** Bounds the bytes of the large emails that a worker has in hand. */
export function createLargeBodies() {
  let free = MAX_BYTES_IN_HAND
  return {
    /** Offers all that is free to `start`, which begins no more than that; the rest is free again. */
    async begin<Email extends WithLargeBytes>(
      start: (free: number) => Promise<Email[]>,
    ): Promise<Email[]> {
      const offered = free
      free = 0
      let begun: Email[] = []
      try {
        begun = await start(offered)
        return begun
      } finally {
        const taken = begun.reduce((bytes, { largeBytes }) => bytes + largeBytes, 0)
        free += offered - taken
      }
    },
    /** An email is no longer in hand. */
    end({ largeBytes }: WithLargeBytes) {
      free += largeBytes
    },
  }
}
