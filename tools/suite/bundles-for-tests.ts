import type { TestProject } from 'vitest/node';
import { builtConsole } from '../build/build-console.ts';
import { bundles } from '../build/bundle.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The folder of the programs in one file each, of the sources as they are. */
    bundles: string;
  }
}

/** Before the first test of a run: builds the bundles once, so that tests do not race to build them. */
export async function setup(project: TestProject): Promise<void> {
  // End-to-end tests serve the console; `npm test` has already built it.
  const [made] = await Promise.all([bundles(), project.name.startsWith('e2e') ? builtConsole() : null]);
  project.provide('bundles', made);
  project.onTestsRerun(async () => project.provide('bundles', await bundles()));
}
