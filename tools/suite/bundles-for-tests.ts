import type { TestProject } from 'vitest/node';
import { builtConsole } from '../build/build-console.ts';
import { bundles } from '../build/bundle.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The folder of the programs in one file each, of the sources as they are. */
    bundles: string;
  }
}

/** Before the first test of a run: what tests start hundreds of times is made once, and nobody races to make it. */
export async function setup(project: TestProject): Promise<void> {
  // What end-to-end tests start serves it; `npm test` has built it by then.
  const [made] = await Promise.all([bundles(), project.name.startsWith('e2e') ? builtConsole() : null]);
  project.provide('bundles', made);
  project.onTestsRerun(async () => project.provide('bundles', await bundles()));
}
