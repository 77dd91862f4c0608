import type { Command } from 'commander';
import type { Context } from './context.ts';

/** A verb. Returns the exit code, one of `exits` or that of a remote shell; undefined is 0. */
type Verb<A extends unknown[]> = (context: Context, ...args: A) => Promise<number | undefined>;

/** Makes a verb the action of a command: its arguments as declared, then its options. */
export type Act = <A extends unknown[]>(verb: Verb<A>) => (...args: unknown[]) => Promise<void>;

/** The export of a file of verbs: adds arguments, options, and verbs to a noun. */
export type Register = (command: Command, act: Act) => void;
