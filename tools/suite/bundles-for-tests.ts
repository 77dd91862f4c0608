import type { TestProject } from 'vitest/node';
import { builtConsole } from '../build/build-console.ts';
import { bundles } from '../build/bundle.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Folder with the bundled programs. */
    bundles: string;
  }
}

/** Builds the bundles before the first test in a run, so that tests do not build them in parallel. */
export async function setup(project: TestProject): Promise<void> {
  // End-to-end tests also serve the console.
  const [made] = await Promise.all([bundles(), project.name.startsWith('e2e') ? builtConsole() : null]);
  project.provide('bundles', made);
  project.onTestsRerun(async () => project.provide('bundles', await bundles()));
}
