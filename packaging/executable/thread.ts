import { announce, run } from './programs.ts';

// First program of a thread: the text that starts the thread names the program to run.
announce();
run((globalThis as unknown as { threadProgram: string }).threadProgram);
