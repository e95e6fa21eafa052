/** Sets an entry of a map as its latest. If the map then has more than `max`, deletes the oldest entry. */
export function setLatest<Value>(
  map: Map<string, Value>,
  key: string,
  value: Value,
  max: number,
): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= max) return
  const [oldest = key] = map.keys()
  map.delete(oldest)
}
