import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../suite/cli.ts';

/**
 * Returns the texts of the recipes in version 0.1, by name. Each is the first golden module that begins with a comment
 * and has the name of a recipe.
 */
export function firstRecipes(): ReadonlyMap<string, string> {
  const file = join(root, 'protocol/test/golden/resolutions.json');
  const golden = JSON.parse(readFileSync(file, 'utf8')) as { modules: string[] }[];
  const found = new Map<string, string>();
  for (const text of golden.flatMap(({ modules }) => modules)) {
    const name = /^(?:# .*\n)+name: ([a-z-]+)\n/.exec(text)?.[1];
    if (name !== undefined && !found.has(name) && existsSync(join(root, `docs/recipes/${name}.yml`)))
      found.set(name, text);
  }
  return found;
}
