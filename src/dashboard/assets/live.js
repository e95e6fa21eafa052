// Keeps the page of a message up to date.

/** Deliveries of webhooks follow the last change. */
const REFRESH_AFTER_END_MS = 5000

/**
 * Replaces #live by that of the page as it is now, whenever the server says that it has changed.
 *
 * @param {(root: ParentNode) => void} improve is called with what is new on the page
 */
export function followChanges(improve) {
  const stream = document.querySelector('#live')?.getAttribute('data-stream')
  if (!stream) return
  const events = new EventSource(stream)
  events.addEventListener('change', () => refresh(improve))
  events.addEventListener('end', () => {
    events.close()
    setTimeout(() => refresh(improve), REFRESH_AFTER_END_MS)
  })
}

/** @param {(root: ParentNode) => void} improve */
async function refresh(improve) {
  const old = document.querySelector('#live')
  const response = await fetch(old?.getAttribute('data-page') ?? '')
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  const fresh = page.querySelector('#live')
  if (!response.ok || !old || !fresh) return
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
