/**
 * Reports whether a `Prefer` header (RFC 7240) requests `respond-async`. Ignores other and invalid preferences, as the
 * RFC requires. Runs in time linear in the length of the header.
 */
export function prefersAsync(header: string | string[] | undefined): boolean {
  if (header === undefined) return false;
  if (header === 'respond-async') return true;
  const text = Array.isArray(header) ? header.join(',') : header;
  for (const element of splitUnquoted(text, ',')) {
    const preference = splitUnquoted(element, ';')[0] ?? '';
    const equals = preference.indexOf('=');
    const name = (equals === -1 ? preference : preference.slice(0, equals)).trim().toLowerCase();
    const value = equals === -1 ? '' : preference.slice(equals + 1).trim();
    // An empty value is equivalent to no value (RFC 7240, section 2). Other values have no meaning for `respond-async`.
    if (name === 'respond-async' && (value === '' || value === '""')) return true;
  }
  return false;
}

/** Splits text at separators outside double quotes. */
function splitUnquoted(text: string, separator: string): string[] {
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (quoted && char === '\\') at += 1;
    else if (char === '"') quoted = !quoted;
    else if (char === separator && !quoted) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}
