/** A range of time as an address says it: `1795000000-1795003600`, in Unix seconds. Null for anything else. Pure. */
export function zoomOf(text: string): { readonly from: number; readonly to: number } | null {
  const match = /^(\d{1,12})-(\d{1,12})$/.exec(text);
  if (match === null) return null;
  const [from, to] = [Number(match[1]), Number(match[2])];
  return to - from >= 60 ? { from, to } : null;
}
