const WAITS_MS = 300

/** The placeholders whose values the editor asks for; the service renders them. */
const PLACEHOLDER = /\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}/g

/** Previews the content of an editor while someone types, through the frame and the button that work without script. */
export function previewWhileTyping() {
  /** @type {HTMLFormElement | null} */
  const form = document.querySelector('form[data-preview]')
  /** @type {HTMLButtonElement | null | undefined} */
  const button = form?.querySelector('[data-preview-button]')
  if (!form || !button) return
  let count = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer

  button.addEventListener('click', (event) => {
    event.preventDefault()
    update()
  })
  form.addEventListener('input', () => {
    addVariables(form)
    clearTimeout(timer)
    timer = setTimeout(update, WAITS_MS)
  })

  /** Posts the form into a new frame, which takes the place of the old one once it is loaded: so Back leaves the page. */
  function update() {
    /** @type {HTMLIFrameElement | null} */
    const shown = document.querySelector('iframe.preview:not([hidden])')
    if (!shown || !form || !button) return
    for (const late of document.querySelectorAll('iframe.preview[hidden]')) late.remove()
    count += 1
    const next = document.createElement('iframe')
    next.className = 'preview'
    next.title = shown.title
    next.name = `preview-${count}`
    next.setAttribute('sandbox', '')
    next.hidden = true
    shown.after(next)
    button.formTarget = next.name
    form.requestSubmit(button)
    next.addEventListener('load', () => {
      shown.remove()
      next.hidden = false
    })
  }
}

/**
 * Adds a field for each variable of the text that has none yet.
 *
 * @param {HTMLFormElement} form
 */
function addVariables(form) {
  const fields = form.querySelector('[data-variables]')
  if (!fields) return
  const texts = ['subject', 'html', 'text'].map((name) => new FormData(form).get(name))
  for (const [, name = ''] of texts.join(' ').matchAll(PLACEHOLDER)) {
    const field = `variable.${name}`
    if (name === 'unsubscribe_url' || form.elements.namedItem(field)) continue
    const row = document.createElement('div')
    const label = document.createElement('label')
    const input = document.createElement('input')
    row.className = 'field'
    label.htmlFor = `field-${field}`
    label.textContent = name
    input.id = label.htmlFor
    input.name = field
    input.value = name
    input.autocomplete = 'off'
    row.append(label, input)
    fields.append(row)
  }
}
