import * as v from 'valibot'

/**
 * Returns the parts of `scheme://[user:password@]host[:port][?parameters]`, with '' for each that is absent; null if
 * the text is invalid. An IPv6 address has no brackets.
 */
export function readServerUrl(text: string) {
  const url = URL.parse(text)
  // A path or fragment is most likely a part of the password that needs escaping.
  if (!url || !/^\/?$/.test(url.pathname) || url.hash) return null
  try {
    return {
      protocol: url.protocol,
      host: url.hostname.replace(/^\[|\]$/g, '').toLowerCase(),
      port: url.port,
      user: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
      parameters: Object.fromEntries(url.searchParams),
    }
  } catch {
    return null
  }
}

/** A parameter that is true or false. */
export const flag = v.pipe(
  v.picklist(['true', 'false']),
  v.transform((text) => text === 'true'),
)

/** A URL that `read` accepts. `read` returns the problem of any other. */
export function urlReadBy(read: (text: string) => object | { problem: string }) {
  return v.pipe(
    v.string(),
    v.rawCheck(({ dataset, addIssue }) => {
      const found = dataset.typed ? read(dataset.value) : {}
      if ('problem' in found) addIssue({ message: String(found.problem) })
    }),
  )
}
