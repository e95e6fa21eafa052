declare const parsed: unique symbol

/** The JSON text of a T. */
export type Json<T> = string & { readonly [parsed]: T }

/** Returns a value as JSON text that remembers its type. */
export function toJson<T>(value: T): Json<T> {
  return JSON.stringify(value) as Json<T>
}
