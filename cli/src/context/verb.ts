import type { Command } from 'commander';
import type { Context } from './context.ts';

/**
 * A function that runs a command. Returns the exit code: one of `exits`, or the exit code of a remote shell. Undefined
 * means 0.
 */
type Verb<A extends unknown[]> = (context: Context, ...args: A) => Promise<number | undefined>;

/** Makes a function the action of a command. The function receives the declared arguments, then the options. */
export type Act = <A extends unknown[]>(verb: Verb<A>) => (...args: unknown[]) => Promise<void>;

/** The type of functions that add arguments, options, and subcommands to a noun. */
export type Register = (command: Command, act: Act) => void;
