/** Returns the pattern for a glob with `*`, `?`, and brackets. Brackets without a valid range match themselves. */
export function globPattern(glob: string): RegExp {
  const source = glob.replace(/\[!?[^\]]+\]|\W/g, (part) => {
    if (part === '*') return '.*';
    if (part === '?') return '.';
    return part.length === 1 ? `\\${part}` : (bracket(part) ?? part.replace(/\W/g, '\\$&'));
  });
  return new RegExp(`^${source}$`);
}

function bracket(part: string): string | undefined {
  const isNegated = part.startsWith('[!');
  const characters = part.slice(isNegated ? 2 : 1, -1).replace(/[\\[^]/g, '\\$&');
  const source = `[${isNegated ? '^' : ''}${characters}]`;
  try {
    new RegExp(source);
    return source;
  } catch {
    return undefined;
  }
}
