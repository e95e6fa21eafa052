// Improves the pages of the dashboard; each of them works without it.

import { followChanges, refreshParts } from './live.js'
import { previewWhileTyping } from './preview.js'

/**
 * Shows times in the reader's zone. The text keeps its length, so that nothing moves.
 *
 * @param {ParentNode} root
 */
function showLocalTimes(root) {
  for (const time of root.querySelectorAll('time')) {
    const at = new Date(time.dateTime)
    if (Number.isNaN(at.getTime())) continue
    const two = (/** @type {number} */ value) => String(value).padStart(2, '0')
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
    time.textContent = `${day} ${two(at.getHours())}:${two(at.getMinutes())}`
  }
}

/**
 * Adds a button behind each text that people copy.
 *
 * @param {ParentNode} root
 */
function addCopyButtons(root) {
  if (!navigator.clipboard) return
  for (const text of root.querySelectorAll('[data-copy]')) {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'plain'
    button.textContent = 'Copy'
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(text.textContent ?? '')
      button.textContent = 'Copied'
    })
    text.after(' ', button)
  }
}

/** Makes links to texts copy them. */
function copyLinkedTexts() {
  if (!navigator.clipboard) return
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const links = document.querySelectorAll('a[data-copy-from]')
  for (const link of links) {
    link.addEventListener('click', async (event) => {
      event.preventDefault()
      const response = await fetch(link.href)
      await navigator.clipboard.writeText(await response.text())
      link.textContent = 'Copied'
    })
  }
}

const DOUBLE_CLICK_MS = 2000

/** Sends a form once when its button is clicked twice: credits would be granted twice. */
function ignoreDoubleClicks() {
  /** @type {WeakMap<EventTarget, number>} */
  const sentAt = new WeakMap()
  document.addEventListener('submit', (event) => {
    const form = /** @type {HTMLFormElement} */ (event.target)
    // The button of the preview sends into a frame, as often as it is clicked.
    if (form.method !== 'post' || event.submitter?.hasAttribute('formtarget')) return
    if (event.timeStamp - (sentAt.get(form) ?? -DOUBLE_CLICK_MS) < DOUBLE_CLICK_MS) {
      event.preventDefault()
    } else {
      sentAt.set(form, event.timeStamp)
    }
  })
}

/** "/" searches, "?" lists the keys, "g" and a letter open a page. */
function listenToKeys() {
  const help = /** @type {HTMLDialogElement | null} */ (document.querySelector('#help'))
  let isGoing = false
  document.addEventListener('keydown', (event) => {
    const isTyping = document.activeElement?.matches('input, textarea, select, [contenteditable]')
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
    /** @type {HTMLElement | null} */
    const link = isGoing ? document.querySelector(`[data-key="${CSS.escape(event.key)}"]`) : null
    isGoing = false
    if (link) {
      event.preventDefault()
      link.click()
    } else if (event.key === 'g') {
      isGoing = true
    } else if (event.key === '/') {
      /** @type {HTMLElement | null} */
      const search = document.querySelector('input[type="search"]')
      if (!search) return
      event.preventDefault()
      search.focus()
    } else if (event.key === '?') {
      help?.showModal()
    }
  })
}

/** @param {ParentNode} root */
function improve(root) {
  showLocalTimes(root)
  addCopyButtons(root)
}

improve(document)
copyLinkedTexts()
followChanges(improve)
ignoreDoubleClicks()
listenToKeys()
previewWhileTyping()
refreshParts(showLocalTimes)
