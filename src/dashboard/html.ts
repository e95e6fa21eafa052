import htm from 'htm'
import { type ComponentChildren, Fragment, h } from 'preact'
import { renderToString } from 'preact-render-to-string'

/** The content of an element: nodes, texts, and null or false for nothing. Texts are escaped when rendered. */
export type Content = ComponentChildren

// The types of htm describe its CommonJS module, in which the function is a property.
const template = (htm as unknown as typeof htm.default).bind(h)

/** Makes nodes from a template: html`<p class=${name}>${text}</p>`. */
export function html(strings: TemplateStringsArray, ...values: unknown[]): Content {
  return template(strings, ...values)
}

/** Returns the HTML text of nodes. */
export function render(content: Content): string {
  return renderToString(h(Fragment, null, content))
}
