import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { expectAnswer, goneMessage, type NoServer } from '../../host/databases/no-server.ts';
import { identifier } from '../../host/databases/postgresql.ts';
import { HostFailure } from '../../host/failure.ts';
import { fieldChanges } from '../database/field-changes.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  type Difference,
  type Machine,
  nothing,
  presenceDrift,
  withChanges,
} from '../provider/provider.ts';
import { changeObjects, type ExtensionRecord, readObjects } from './objects.ts';

export interface SeenExtension {
  missing: NoServer | null;
  extension: ExtensionRecord | null;
}

/** The extension before the agent first changed it. */
export type ExtensionBefore = { was: 'absent' } | { was: 'extension'; version: string; schema: string };

type Declared = ResolvedResource<'postgresql-extension'>;
type Body = Declared['body'];

/** An extension in a database. It is not dropped while other objects use it. */
export const postgresqlExtension = defineProvider<'postgresql-extension', SeenExtension, ExtensionBefore>({
  type: 'postgresql-extension',
  fields: { name: 'text', database: 'text', schema: 'text?', version: 'text?', force: 'boolean?', ensure: 'text?' },
  // The extension's tables and sequences may have grants.
  brings: () => ['databases'],

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffExtension,

  async remember(_resource, { extension }, _difference, before) {
    if (before !== null) return before;
    return extension === null
      ? { was: 'absent' }
      : { was: 'extension', version: extension.version, schema: extension.schema };
  },

  async apply({ body }, { extension }, _difference, machine) {
    const { name, version, schema } = body;
    const statements =
      body.ensure === 'absent'
        ? [`DROP EXTENSION ${identifier(name)}`]
        : extensionStatements(name, extension, { version: version ?? undefined, schema: schema ?? undefined });
    return changeObjects(body.database, statements, machine);
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: ({ body }, before, seen) => diffExtensionRemoval(body, before, seen),

  async remove({ body }, before, { extension }, _difference, machine) {
    const { name } = body;
    const statements =
      before.was === 'absent'
        ? [`DROP EXTENSION ${identifier(name)}`]
        : extensionStatements(name, extension, reachable(before, extension));
    return changeObjects(body.database, statements, machine);
  },
});

async function look({ body }: Declared, machine: Machine): Promise<SeenExtension> {
  const read = await readObjects(body.database, machine);
  if ('missing' in read) return { missing: read.missing, extension: null };
  const { extensions, available } = read.value;
  const extension = extensions.get(body.name) ?? null;
  const message = `PostgreSQL has no extension ${body.name} on this machine; declare the package with its files before this resource`;
  return {
    missing: extension === null && !available.has(body.name) ? { kind: 'programs', message, gone: true } : null,
    extension,
  };
}

export function diffExtension(
  { body }: Pick<Declared, 'body'>,
  { missing, extension }: SeenExtension,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  expectAnswer(missing, purpose !== 'drift' && body.ensure !== 'absent');
  if (body.ensure === 'absent') {
    if (extension === null) return nothing();
    if (purpose !== 'drift') expectNoData(body, extension);
    return presenceDrift();
  }
  const { version } = body;
  const changes: FieldChange[] = extension === null ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  const isUpdated = extension !== null && version != null && version !== extension.version;
  if (isUpdated && purpose !== 'drift' && !extension.targets.includes(version))
    throw new HostFailure(`the extension ${body.name} cannot be updated from ${extension.version} to ${version}`);
  changes.push(...fieldChanges(['version', 'schema'], body, extension));
  return withChanges(extension === null ? 'create' : 'update', changes, { awaits: [missing] });
}

function expectNoData({ name, force }: Body, { has_tables }: ExtensionRecord): void {
  if (has_tables && force !== true)
    throw new HostFailure(
      `the extension ${name} is not dropped, because the data in its tables could not be restored: declare \`force: true\` and apply it, to drop it with this data`,
    );
}

/** Returns the parts of the original version and schema that can be restored. */
const reachable = (
  { version, schema }: Extract<ExtensionBefore, { was: 'extension' }>,
  extension: ExtensionRecord | null,
): { version?: string | undefined; schema: string } => ({
  schema,
  version: extension === null || extension.targets.includes(version) ? version : undefined,
});

export function diffExtensionRemoval(body: Body, before: ExtensionBefore, seen: SeenExtension): Difference {
  const { missing, extension } = seen;
  expectAnswer(missing, false);
  if (before.was === 'absent') {
    if (extension === null) return nothing('already removed');
    expectNoData(body, extension);
    return presenceDrift();
  }
  if (missing !== null) return nothing(goneMessage);
  const changes: FieldChange[] = extension === null ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  const wanted = reachable(before, extension);
  changes.push(...fieldChanges(['version', 'schema'], wanted, extension));
  const isStuck = extension !== null && wanted.version === undefined && extension.version !== before.version;
  const stays = isStuck ? `; it cannot go back to the version ${before.version}` : '';
  if (changes.length === 0) return nothing(isStuck ? `left unchanged${stays}` : 'already in its original state');
  return { action: 'remove', changes, diff: null, message: `restores the original state${stays}` };
}

export function extensionStatements(
  name: string,
  extension: ExtensionRecord | null,
  { version, schema }: { version?: string | undefined; schema?: string | undefined },
): string[] {
  if (extension === null) {
    const options = [
      ...(schema === undefined ? [] : [` SCHEMA ${identifier(schema)}`]),
      ...(version === undefined ? [] : [` VERSION ${identifier(version)}`]),
    ];
    return [`CREATE EXTENSION ${identifier(name)}${options.join('')}`];
  }
  const change = `ALTER EXTENSION ${identifier(name)}`;
  return [
    ...(version === undefined || version === extension.version ? [] : [`${change} UPDATE TO ${identifier(version)}`]),
    ...(schema === undefined || schema === extension.schema ? [] : [`${change} SET SCHEMA ${identifier(schema)}`]),
  ];
}
