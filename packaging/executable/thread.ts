import { announce, run } from './programs.ts';

// Entry point of a thread. The source text of the thread sets `threadProgram` to the name of the program to run.
announce();
run((globalThis as unknown as { threadProgram: string }).threadProgram);
