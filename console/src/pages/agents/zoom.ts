/** Parses a time range such as `1795000000-1795003600` (Unix seconds, at least a minute); null if invalid. Pure. */
export function zoomOf(text: string): { readonly from: number; readonly to: number } | null {
  const match = /^(\d{1,12})-(\d{1,12})$/.exec(text);
  if (match === null) return null;
  const [from, to] = [Number(match[1]), Number(match[2])];
  return to - from >= 60 ? { from, to } : null;
}
