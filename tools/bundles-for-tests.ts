import type { TestProject } from 'vitest/node';
import { bundles } from './bundle.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The folder of the programs in one file each, of the sources as they are. */
    bundles: string;
  }
}

/** Before the first test of a run: what tests start hundreds of times is made once, and nobody races to make it. */
export async function setup(project: TestProject): Promise<void> {
  project.provide('bundles', await bundles());
  project.onTestsRerun(async () => project.provide('bundles', await bundles()));
}
