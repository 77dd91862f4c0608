/**
 * Returns the available encoding that a client prefers (RFC 9110, 12.5.3).
 * @param accepted the `Accept-Encoding` header
 * @param available available encodings, best first
 * @returns null for the identity encoding
 */
export function chooseEncoding<E extends string>(accepted: string | undefined, available: readonly E[]): E | null {
  const weights = new Map<string, number>();
  for (const part of (accepted ?? '').toLowerCase().split(',')) {
    const [coding = '', ...parameters] = part.split(';').map((text) => text.trim());
    const q = parameters.find((text) => text.startsWith('q='));
    const weight = q === undefined ? 1 : Number(q.slice(2));
    if (coding !== '') weights.set(coding, weight > 0 && weight <= 1 ? weight : 0);
  }
  const weightOf = (coding: string): number => weights.get(coding) ?? weights.get('*') ?? 0;
  let best: E | null = null;
  for (const encoding of available) if (weightOf(encoding) > (best === null ? 0 : weightOf(best))) best = encoding;
  // Chooses identity only if the client prefers it or accepts none of the available encodings.
  return best !== null && (weights.get('identity') ?? 0) > weightOf(best) ? null : best;
}
