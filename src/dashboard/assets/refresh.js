const EVERY_MS = 2000

/**
 * Replaces the parts of the page that are marked data-refresh by those of the page fetched again, until none is marked.
 *
 * @param {(root: ParentNode) => void} improve
 */
export function refreshParts(improve) {
  const marked = () => document.querySelectorAll('[data-refresh]')

  async function refresh() {
    if (!document.hidden) await replaceParts()
    plan()
  }

  async function replaceParts() {
    const response = await fetch(location.href).catch(() => null)
    if (!response?.ok) return
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    for (const part of marked()) {
      const next = page.getElementById(part.id)
      if (!next) continue
      part.replaceWith(next)
      improve(next)
    }
  }

  function plan() {
    if (marked().length > 0) setTimeout(refresh, EVERY_MS)
  }

  plan()
}
