import type { Fault } from '@muster/protocol';
import type { Client } from '@muster/protocol/client';
import { type AgentValue, listAgents, listValues } from '@muster/protocol/http';
import {
  type AgentFacts,
  type Json,
  type Layer,
  type Layers,
  type LookupValues,
  lookupList,
  type ModuleDocument,
  pointerKeys,
} from '@muster/protocol/module';
import { givenLayers, readAgentFacts, readParameters } from '@muster/protocol/module-trial';
import type { Context } from '../../context/context.ts';
import { chooseAgent } from '../../execution/choose-agents.ts';
import { CliError, exits, usageError } from '../../exit.ts';
import { codeFrame } from '../../text/code-frame.ts';
import { faultLine } from '../../text/fault-text.ts';
import { counted } from '../../text/style.ts';
import { readSource } from './modules-source.ts';

/** Reads the agent and the parameters for a trial, and prints its errors. */

export interface AgentChoice {
  agent?: string;
  facts?: string;
}

/** A module with its source. */
export interface TriedModule {
  readonly module: ModuleDocument;
  /** File or name as typed. */
  readonly source: string;
  readonly content: string;
}

export interface TrialInput {
  readonly agent: AgentFacts;
  /** Lookup values, by module and name. */
  readonly lookups: Record<string, LookupValues>;
  /** Values that assignments set for the agent, by module and parameter. Empty for an agent from a file. */
  readonly assigned: Layers;
}

/** Reads the agent specified with `--agent` or `--facts`, and what the orchestrator adds to the modules for it. */
export async function readAgent(
  context: Context,
  { agent, facts }: AgentChoice,
  modules: readonly ModuleDocument[],
): Promise<TrialInput> {
  if (agent !== undefined && facts !== undefined)
    throw usageError('--agent cannot be combined with --facts', 'Specify an agent of the orchestrator, or a file.');
  if (agent !== undefined) {
    const { call } = await context.connect();
    const { name, node_id, attributes, tags } = await chooseAgent(call, agent);
    const lookups = await lookUp(call, modules);
    const assigned = await assignedLayers(call, node_id, modules);
    return { agent: { name, node_id, attributes, tags }, lookups, assigned };
  }
  if (facts === undefined)
    throw usageError(
      'an agent is required',
      'Name an agent with --agent, or a file with --facts that has attributes and tags, such as the output of: muster agents show web-1 --json',
    );
  const { file, bytes } = await readSource(context, facts);
  const read = readAgentFacts(bytes);
  if (!read.ok) throw faulty(context, file, new TextDecoder().decode(bytes), read.faults);
  const { lookups } = read.value;
  return {
    agent: read.value.agent,
    lookups: Object.fromEntries(modules.map(({ name }) => [name, lookups])),
    assigned: {},
  };
}

/**
 * Returns the values that assignments, and modules that require the given ones, set for an agent now. Leaves out
 * parameters that a module no longer declares.
 */
async function assignedLayers(call: Client, node_id: string, modules: readonly ModuleDocument[]): Promise<Layers> {
  const values = await call(listValues, { params: { node_id }, query: {}, all: true });
  const names = new Set(modules.map(({ name }) => name));
  return Object.fromEntries(
    modules.map(({ name, parameters }) => {
      const own = values.filter(({ module, parameter }) => module === name && Object.hasOwn(parameters, parameter));
      const layersOf = (value: AgentValue) => outerLayers(value, parameters[value.parameter]?.merge, names);
      return [name, Object.fromEntries(own.map((value) => [value.parameter, layersOf(value)] as const))];
    }),
  );
}

/**
 * Returns the layers that neither the module itself nor one of the named modules declares, from low to high, because
 * layers of the same precedence keep their order. Layers that do not contribute are needed only if the tried module
 * merges differently.
 */
const outerLayers = (
  { layers, overrode, merge: stored }: AgentValue,
  merge: string | undefined,
  names: ReadonlySet<string>,
): readonly Layer[] =>
  [...layers, ...(merge === stored ? [] : overrode)]
    .toReversed()
    .filter(({ from, name }) => from === 'assignment' || (from === 'requires' && !names.has(name ?? '')));

/** Replaces the assigned values of parameters for which a file gives a value. */
export const withGiven = (assigned: Layers, given: Record<string, Record<string, Json>>): Layers => ({
  ...assigned,
  ...Object.fromEntries(
    Object.entries(given).map(([module, values]) => [module, { ...assigned[module], ...givenLayers(values) }]),
  ),
});

/** Returns the modules' lookup values, from the orchestrator's approved agents. */
async function lookUp(call: Client, modules: readonly ModuleDocument[]): Promise<Record<string, LookupValues>> {
  const selected = new Map<string, AgentFacts[]>();
  for (const { selector } of modules.flatMap(({ lookups }) => Object.values(lookups)))
    if (!selected.has(selector))
      selected.set(selector, await call(listAgents, { query: { status: 'approved', filter: selector }, all: true }));
  return Object.fromEntries(
    modules.map(({ name, lookups }) => [
      name,
      Object.fromEntries(
        Object.entries(lookups).map(([lookup, { selector, of }]) => [
          lookup,
          lookupList(of, selected.get(selector) ?? []),
        ]),
      ),
    ]),
  );
}

/** Reads the parameters in a file, by module. */
export async function readGiven(
  context: Context,
  file: string | undefined,
  modules: readonly ModuleDocument[],
): Promise<Record<string, Record<string, Json>>> {
  if (file === undefined) return {};
  const { file: name, bytes } = await readSource(context, file);
  const read = readParameters(bytes, modules);
  if (!read.ok) throw faulty(context, name, new TextDecoder().decode(bytes), read.faults);
  return read.value;
}

/** Prints the errors of a file with the lines around them. @returns the error to throw */
export function faulty({ out }: Context, file: string, content: string, faults: readonly Fault[]): CliError {
  const message = `${counted(faults.length, 'error')} in ${file}`;
  const remedy = 'Fix the errors at the positions above.';
  if (out.json) return new CliError(exits.failed, 'module_invalid', message, remedy, { faults });
  for (const fault of faults) {
    out.note(faultLine(file, fault, out.noteColor));
    const frame = codeFrame(content, fault, { color: out.noteColor, width: out.style.width });
    if (frame !== '') out.note(frame);
  }
  return new CliError(exits.failed, 'module_invalid', message, remedy);
}

/** Prints resolution errors at their positions in the modules. @returns the error to throw */
export function unresolved(
  { out }: Context,
  code: string,
  faults: readonly Fault[],
  modules: readonly TriedModule[],
): CliError {
  const message = `the ${modules.length === 1 ? 'module does' : 'modules do'} not resolve for this agent: ${counted(faults.length, 'error')}`;
  if (out.json) return new CliError(exits.failed, code, message, null, { faults });
  for (const fault of faults) {
    const found = modules.find(({ module }) => moduleOf(fault) === module.name);
    if (found === undefined) out.note(`${out.noteColor.red('error:')} ${fault.message}`);
    else {
      out.note(faultLine(found.source, fault, out.noteColor));
      const frame = codeFrame(found.content, fault, { color: out.noteColor, width: out.style.width });
      if (frame !== '') out.note(frame);
    }
  }
  return new CliError(exits.failed, code, message, 'Fix the errors at the positions above.');
}

/** Returns the module of an error if its path is a pointer into `{modules: {<name>: …}}`; otherwise, undefined. */
export const moduleOf = ({ path }: Fault): string | undefined => {
  const [root, name] = pointerKeys(path);
  return root === 'modules' ? name : undefined;
};
