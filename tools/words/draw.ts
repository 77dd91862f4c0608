/**
 * Draws without putting back, the same for the same seed (mulberry32, as published by Tommy Ettinger).
 * @returns at most `count` values, in the order of `values`
 */
export function draw<Value>(values: readonly Value[], count: number, seed: number): Value[] {
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const places = values.map((_, place) => place);
  for (let place = places.length - 1; place > 0; place--) {
    const other = Math.floor(random() * (place + 1));
    [places[place], places[other]] = [places[other]!, places[place]!];
  }
  return places
    .slice(0, count)
    .toSorted((a, b) => a - b)
    .map((place) => values[place]!);
}
