/** @param now Unix milliseconds */
export function tokenState(
  token: { readonly revoked_at: number | null; readonly uses_left: number; readonly expires_at: number },
  now: number,
): 'valid' | 'revoked' | 'used up' | 'expired' {
  if (token.revoked_at !== null) return 'revoked';
  if (token.uses_left <= 0) return 'used up';
  return token.expires_at * 1000 <= now ? 'expired' : 'valid';
}

/**
 * Parses tags separated by spaces or commas, such as `role=web site=paris`.
 * @throws Error with a message that names the first invalid tag
 */
export function tagsOf(text: string): Record<string, string> {
  const tags: Record<string, string> = {};
  for (const part of text.split(/[\s,]+/).filter(Boolean)) {
    const at = part.indexOf('=');
    if (at < 1) throw new Error(`“${part}” is not a tag. Use key=value`);
    tags[part.slice(0, at)] = part.slice(at + 1);
  }
  return tags;
}
