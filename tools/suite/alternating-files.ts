import { createHash } from 'node:crypto';

/**
 * Groups of slow test files with the same purpose. `npm test` runs one file of each group; `npm run soak -- kill-steps` runs
 * all.
 */
export const groups: readonly (readonly string[])[] = [
  ['e2e/browser/apply.test.ts', 'e2e/browser/drafts.test.ts', 'e2e/browser/lazy-pages.test.ts'],
  ['e2e/hosts/recipes.test.ts', 'e2e/hosts/sites.test.ts'],
  ['e2e/hosts/documentation.test.ts', 'e2e/hosts/roles.test.ts'],
];

/**
 * Returns the files that a run omits: all files of each group except one, which depends on the seed of the run.
 * @param env `npm test` sets MUSTER_SAMPLE_SEED, and `npm run soak` MUSTER_EVERY_STEP; other runs omit no file
 */
export function omittedFiles(env: NodeJS.ProcessEnv): string[] {
  const { MUSTER_SAMPLE_SEED: seed, MUSTER_EVERY_STEP: everyStep } = env;
  if (seed === undefined || everyStep !== undefined) return [];
  return groups.flatMap((files) => {
    const kept = createHash('sha256').update(`${seed} ${files[0]}`).digest().readUInt32BE() % files.length;
    return files.filter((_, at) => at !== kept);
  });
}
