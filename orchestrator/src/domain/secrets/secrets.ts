import { MusterError } from '@muster/protocol';
import type { Secret, SecretRestriction } from '@muster/protocol/http';
import { fromJson, type JsonText, toJson } from '../../store/json-text.ts';
import {
  deleteSecret,
  insertSecret,
  secretByName,
  secretPage,
  secretVersion,
  takeSecretVersion,
  updateSecret,
} from '../../store/queries/secrets.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { requireSelector } from '../agents/agents.ts';
import { audited } from '../audit/audit.ts';
import type { Actor, Context } from '../shared/context.ts';
import { mapPage, type Page, type PageRequest, readPage } from '../shared/page.ts';
import { keepFormer } from './former-secrets.ts';
import { sealValue } from './secret-seal.ts';

/** Manages secrets, which are stored encrypted, sent to machines, and never returned by the API. */

type Row = NonNullable<Awaited<ReturnType<typeof findRow>>>;
const findRow = ({ db }: Context, name: string) => db.get(secretByName, { name });

const timeOf = (ms: number): string => new Date(ms).toISOString();

const toSecret = (row: Row): Secret => ({
  name: row.name,
  description: row.description,
  expires_at: row.expires_at_ms === null ? null : timeOf(row.expires_at_ms),
  restriction: fromJson(row.restriction),
  created_at: timeOf(row.created_at_ms),
  created_by: row.created_by,
  updated_at: timeOf(row.updated_at_ms),
  updated_by: row.updated_by,
});

const unknown = (name: string) =>
  new MusterError('secret_not_found', `there is no secret ${JSON.stringify(name.slice(0, 64))}`);

export interface GivenRestriction {
  node_ids?: string[] | undefined;
  /** Either a selector, or tags that must all match. */
  tags?: string | Record<string, string> | undefined;
}

export interface NewSecret {
  name: string;
  value: string;
  description?: string | undefined;
  /** Unix milliseconds. */
  expires_at?: number | undefined;
  restriction?: GivenRestriction | undefined;
}

/** Changes to a secret. Absent fields do not change. */
export interface SecretChange {
  value?: string | undefined;
  /** An empty string removes the description. */
  description?: string | undefined;
  /** Null removes the expiry. */
  expires_at?: number | null | undefined;
  /** An empty object removes the restriction. */
  restriction?: GivenRestriction | undefined;
}

/** Lists secrets by name. */
export async function listSecrets({ db }: Context, request: PageRequest): Promise<Page<Secret>> {
  return mapPage(await readPage(request, (page) => db.all(secretPage, page)), toSecret);
}

export async function getSecret(context: Context, name: string): Promise<Secret> {
  const row = await findRow(context, name);
  if (!row) throw unknown(name);
  return toSecret(row);
}

/**
 * Creates a secret.
 * @throws MusterError invalid_input, selector_invalid, name_taken, secrets_locked
 */
export async function createSecret(context: Context, actor: Actor, requested: NewSecret): Promise<Secret> {
  const { name } = requested;
  const expiry = futureTime(context, requested.expires_at);
  const restriction = restrictionOf(requested.restriction);
  await withNewValue(context, name, requested.value, (value) => [
    statement(
      secretByName,
      { name },
      { expect: 'no_row', else: 'name_taken', detail: `a secret named ${name} already exists` },
    ),
    value.take,
    statement(insertSecret, {
      name,
      version: value.version,
      key_id: value.key_id,
      sealed: value.sealed,
      description: requested.description || null,
      expires_at_ms: expiry ?? null,
      restriction,
      now_ms: context.now(),
      by: actor.id,
    }),
    audited(context, {
      type: 'secret.created',
      actor,
      target: { type: 'secret', id: name, name },
      summary: `secret ${name} created`,
      metadata: { version: value.version, ...eventMetadata(expiry, restriction) },
    }),
  ]);
  return getSecret(context, name);
}

/**
 * Changes a secret.
 * @throws MusterError invalid_input, selector_invalid, secret_not_found, secret_changed, secrets_locked
 */
export async function changeSecret(
  context: Context,
  actor: Actor,
  name: string,
  change: SecretChange,
): Promise<Secret> {
  const expiry = change.expires_at === null ? null : futureTime(context, change.expires_at);
  const restriction = change.restriction === undefined ? undefined : restrictionOf(change.restriction);
  const row = await findRow(context, name);
  if (!row) throw unknown(name);
  const changes = {
    value: change.value !== undefined,
    description: change.description !== undefined,
    expiry: expiry !== undefined,
    restriction: restriction !== undefined,
  };
  const fields = Object.entries(changes).flatMap(([field, changed]) => (changed ? [field] : []));
  if (fields.length === 0) return toSecret(row);
  const statements = (value: NewValue | null): Statement[] => [
    ...(value === null ? [] : [value.take, keepFormer(context, name)]),
    statement(
      updateSecret(changes),
      {
        name,
        now_ms: context.now(),
        by: actor.id,
        version: value?.version,
        key_id: value?.key_id,
        sealed: value?.sealed,
        description: change.description || null,
        expires_at_ms: expiry,
        restriction,
      },
      { expect: 'changed', else: 'secret_not_found', detail: `there is no secret ${name}` },
    ),
    audited(context, {
      type: 'secret.updated',
      actor,
      target: { type: 'secret', id: name, name },
      summary: `secret ${name} changed: ${fields.join(', ')}`,
      metadata: {
        changed: fields,
        ...(value === null ? {} : { version: value.version }),
        ...eventMetadata(expiry, restriction),
      },
    }),
  ];
  if (change.value === undefined) await context.db.write({ name: 'secrets/change', statements: statements(null) });
  else await withNewValue(context, name, change.value, statements);
  return getSecret(context, name);
}

export async function removeSecret(context: Context, actor: Actor, name: string): Promise<void> {
  await context.db.write({
    name: 'secrets/remove',
    statements: [
      keepFormer(context, name),
      statement(deleteSecret, { name }, { expect: 'changed', else: 'secret_not_found', detail: unknown(name).message }),
      audited(context, {
        type: 'secret.removed',
        actor,
        target: { type: 'secret', id: name, name },
        summary: `secret ${name} removed`,
      }),
    ],
  });
}

interface NewValue {
  version: number;
  key_id: string;
  sealed: string;
  /** Claims the version. Fails the transaction with `secret_changed` if the version is taken. */
  take: Statement;
}

/** Encrypts a value as the next version of a name, and writes it. Retries if another writer took the version. */
async function withNewValue(
  context: Context,
  name: string,
  value: string,
  statements: (value: NewValue) => Statement[],
): Promise<void> {
  const { db, secretKeys } = context;
  for (let attempt = 1; ; attempt++) {
    try {
      return await secretKeys.encrypting(async (key) => {
        if (key === null)
          throw new MusterError('secrets_locked', 'secrets are encrypted with keys that were not found at startup');
        const version = ((await db.get(secretVersion, { name }))?.version ?? 0) + 1;
        const sealed = sealValue(key, { name, version }, value, context.randomBytes(12));
        const take = statement(takeSecretVersion, { name, version }, { expect: 'changed', else: 'secret_changed' });
        await db.write({ name: 'secrets/put', statements: statements({ version, key_id: key.id, sealed, take }) });
      });
    } catch (error) {
      if (!(error instanceof MusterError && error.code === 'secret_changed' && attempt < 20)) throw error;
    }
  }
}

/**
 * Checks an expiry time. Refuses a time in the past, because an operator can remove a secret to end it now.
 * @throws MusterError invalid_input
 */
function futureTime(context: Context, time: number | undefined): number | undefined {
  if (time === undefined || time > context.now()) return time;
  const message = 'must be in the future; to end a secret now, remove the secret';
  throw new MusterError('invalid_input', `expires_at ${message}`, [{ path: '/expires_at', message }]);
}

function restrictionOf(given: GivenRestriction | undefined): JsonText<SecretRestriction> | null {
  if (given === undefined || (given.node_ids === undefined && given.tags === undefined)) return null;
  const tags = typeof given.tags === 'object' ? selectorOfTags(given.tags) : given.tags;
  if (tags !== undefined) requireSelector(tags, '/restriction/tags');
  const node_ids = given.node_ids === undefined ? null : [...new Set(given.node_ids)];
  return toJson({ node_ids, tags: tags ?? null });
}

const unquoted = /^[^\s()"',=!]+$/;

/** Returns the selector for agents that have all of these tags. */
function selectorOfTags(tags: Record<string, string>): string {
  const quoted = (value: string) => (unquoted.test(value) ? value : `"${value.replaceAll(/["\\]/g, '\\$&')}"`);
  return Object.entries(tags)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${quoted(value)}`)
    .join(' ');
}

/** Returns the metadata for an event about a secret, without its value. */
const eventMetadata = (
  expiry: number | null | undefined,
  restriction: JsonText<SecretRestriction> | null | undefined,
) => ({
  ...(expiry === undefined ? {} : { expires_at: expiry === null ? null : timeOf(expiry) }),
  ...(restriction === undefined ? {} : { restriction: fromJson(restriction) }),
});
