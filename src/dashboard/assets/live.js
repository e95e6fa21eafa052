// Keeps a page up to date: parts of it are replaced by those of the page fetched again.

/** Deliveries of webhooks follow the last change. */
const REFRESH_AFTER_END_MS = 5000

const REFRESH_EVERY_MS = 2000

/**
 * Replaces #live whenever the server says that it has changed.
 *
 * @param {(root: ParentNode) => void} improve is called with what is new on the page
 */
export function followChanges(improve) {
  const stream = document.querySelector('#live')?.getAttribute('data-stream')
  if (!stream) return
  const events = new EventSource(stream)
  events.addEventListener('change', () => replaceLive(improve))
  events.addEventListener('end', () => {
    events.close()
    setTimeout(() => replaceLive(improve), REFRESH_AFTER_END_MS)
  })
}

/** @param {(root: ParentNode) => void} improve */
async function replaceLive(improve) {
  const old = document.querySelector('#live')
  const fresh = (await fetchPage(old?.getAttribute('data-page') ?? ''))?.querySelector('#live')
  if (!old || !fresh) return
  const said = old.querySelector('[aria-live]')
  const toSay = fresh.querySelector('[aria-live]')
  old.replaceChildren(...fresh.childNodes)
  // A region is read out when its content changes, not when it is new.
  if (said && toSay) {
    const content = [...toSay.childNodes]
    toSay.replaceWith(said)
    said.replaceChildren(...content)
  }
  improve(old)
}

/**
 * Replaces the parts that are marked data-refresh every two seconds, until none is marked.
 *
 * @param {(root: ParentNode) => void} improve is called with what is new on the page
 */
export function refreshParts(improve) {
  const marked = () => document.querySelectorAll('[data-refresh]')

  async function refresh() {
    const page = document.hidden ? null : await fetchPage(location.href)
    for (const part of page ? marked() : []) {
      const fresh = page?.getElementById(part.id)
      if (!fresh) continue
      part.replaceWith(fresh)
      improve(fresh)
    }
    plan()
  }

  function plan() {
    if (marked().length > 0) setTimeout(refresh, REFRESH_EVERY_MS)
  }

  plan()
}

/**
 * Returns a page as it is now; null if it cannot be fetched.
 *
 * @param {string} url
 */
async function fetchPage(url) {
  const response = await fetch(url).catch(() => null)
  if (!response?.ok) return null
  return new DOMParser().parseFromString(await response.text(), 'text/html')
}
