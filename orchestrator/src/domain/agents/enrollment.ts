import { isName, MusterError } from '@muster/protocol';
import type { Hello, Welcome } from '@muster/protocol/wire';
import { fromJson, toJson } from '../../store/json-text.ts';
import { insertAgentKey } from '../../store/queries/agents/agent-keys.ts';
import { agentIdTakingName, insertAgent, setAgentStatus } from '../../store/queries/agents/agents.ts';
import {
  deleteOldEnrolmentTokens,
  enrolmentTokenByHash,
  enrolmentTokenNaming,
  enrolmentTokens,
  insertEnrolmentToken,
  revokeEnrolmentToken,
  useEnrolmentToken,
} from '../../store/queries/agents/enrollment.ts';
import { putTag } from '../../store/queries/agents/tags.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { hashOfToken } from '../operators/sessions.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { mapPage, type PageRequest, readPage } from '../shared/page.ts';
import type { AgentRow } from './agents.ts';
import { requireAgentName } from './agents.ts';
import { type EnrolmentEndpoints, enrolmentLines } from './enrollment-line.ts';
import type { PendingList } from './pending-list.ts';
import { requireTags } from './tags.ts';

/**
 * Creates, lists, and applies enrollment tokens, which enroll agents without manual approval. A token is stored as a
 * hash and shown only once.
 */

export interface TokenOptions {
  expires_in?: number | undefined;
  uses?: number | undefined;
  name?: string | undefined;
  tags?: Record<string, string> | undefined;
  approve?: boolean | undefined;
}

type TokenRow = NonNullable<Awaited<ReturnType<typeof byHash>>>;
const byHash = ({ db }: Context, token: string) => db.get(enrolmentTokenByHash, { token_hash: hashOfToken(token) });

const toToken = (row: Omit<TokenRow, 'token_hash'>) => ({
  id: row.id,
  name: row.name,
  tags: fromJson(row.tags),
  approve: row.approve === 1,
  uses_left: row.uses_left,
  created_at: row.created_at,
  created_by: row.created_by,
  expires_at: row.expires_at,
  revoked_at: row.revoked_at,
});

/** Creates a token. Only the result contains the token itself and the command line to paste. */
export async function createToken(
  context: Context,
  actor: Actor,
  options: TokenOptions,
  advertised: EnrolmentEndpoints,
) {
  const uses = options.uses ?? 1;
  const approve = options.approve ?? true;
  if (options.name !== undefined) {
    requireAgentName(options.name);
    const message =
      uses > 1
        ? 'only a single-use token can assign a name'
        : approve
          ? null
          : 'only a token that approves agents can assign a name';
    if (message !== null) throw new MusterError('invalid_input', message, [{ path: '/name', message }]);
  }
  const tags = options.tags ?? {};
  requireTags(tags);
  const now = seconds(context.now());
  const token = `mt_${context.randomBytes(24).toString('base64url')}`;
  const row = {
    id: context.newId(),
    token_hash: hashOfToken(token),
    name: options.name ?? null,
    tags: toJson(tags),
    approve: approve ? (1 as const) : (0 as const),
    uses_left: uses,
    created_at: now,
    created_by: actor.id,
    expires_at: now + (options.expires_in ?? 3600),
    revoked_at: null,
  };
  const nameFree =
    row.name === null
      ? []
      : [
          statement(agentIdTakingName, { name: row.name, node_id: '' }, { expect: 'no_row', else: 'name_taken' }),
          statement(
            enrolmentTokenNaming,
            { name: row.name, now },
            {
              expect: 'no_row',
              else: 'name_taken',
              detail: `a valid enrollment token already assigns the name ${row.name}; revoke that token with muster enrollment-tokens revoke, or choose another name`,
            },
          ),
        ];
  await context.db.write({
    name: 'enrolment/create',
    statements: [
      ...nameFree,
      statement(insertEnrolmentToken, { ...row, approve }),
      audited(context, {
        type: 'enrolment.created',
        actor,
        target: { type: 'enrolment_token', id: row.id, name: row.name ?? '' },
        summary: `enrollment token created, valid for ${uses} use${uses === 1 ? '' : 's'}`,
        metadata: { approve, tags, expires_at: row.expires_at },
      }),
    ],
  });
  return { ...toToken(row), token, ...enrolmentLines(advertised, token, approve) };
}

/**
 * Lists tokens, newest first.
 * @param ended whether to include used-up, revoked, and expired tokens
 */
export async function listTokens({ db, now }: Context, ended: boolean, request: PageRequest) {
  const query = enrolmentTokens({ ended });
  return mapPage(await readPage(request, (page) => db.all(query, { now: seconds(now()), ...page })), toToken);
}

/** Seconds for which ended tokens are listed, so that operators can find out how an agent was enrolled. */
const endedListedSecs = 30 * 86_400;

export async function deleteOldTokens(context: Context): Promise<void> {
  const old = statement(deleteOldEnrolmentTokens, { expired_before: seconds(context.now()) - endedListedSecs });
  await context.db.write({ name: 'enrolment/delete old', statements: [old] });
}

export async function revokeToken(context: Context, actor: Actor, id: string): Promise<void> {
  await context.db.write({
    name: 'enrolment/revoke',
    statements: [
      statement(
        revokeEnrolmentToken,
        { id, now: seconds(context.now()) },
        { expect: 'changed', else: 'enrolment_token_not_found' },
      ),
      audited(context, {
        type: 'enrolment.revoked',
        actor,
        target: { type: 'enrolment_token', id, name: '' },
        summary: 'enrollment token revoked',
      }),
    ],
  });
}

/**
 * Returns candidate names for an agent, best first: the given name converted to a valid name, the same name with the
 * first 4 and 8 characters of the agent's ID, and `agent-` with the whole ID, which is always free.
 * @param hostname the hostname, or the name that the token assigns
 */
export function namesFromHostname(hostname: string, nodeId: string): string[] {
  const fitted = (hostname.split('.')[0] ?? '')
    .replace(/[^\p{L}\p{Nd}_-]/gu, '-')
    .replace(/^[^\p{L}]+/u, '')
    .slice(0, 55)
    .toWellFormed();
  const candidates = [fitted, `${fitted}-${nodeId.slice(0, 4)}`, `${fitted}-${nodeId.slice(0, 8)}`];
  return [...(isName(fitted) ? candidates : []), `agent-${nodeId}`];
}

async function freeName({ db }: Context, candidates: readonly string[], nodeId: string): Promise<string> {
  for (const name of candidates) if (!(await db.get(agentIdTakingName, { name, node_id: nodeId }))) return name;
  return candidates.at(-1) as string;
}

export interface Enrolment {
  statements: Statement[];
  /** The transaction's turn, because all agents with the same token change its row; undefined without a token. */
  turn?: string | undefined;
  /** The agent's name in events. */
  label: string;
  /** A new agent's status, name, and tags after the transaction. */
  standing: Pick<Welcome, 'status' | 'name' | 'tags'>;
  /** Whether a new agent gets its own event. Otherwise, a later event counts it together with other new agents. */
  announced: boolean;
  /** The node id of the pending agent that the new agent displaces. */
  displaced: string | null;
}

/**
 * Returns the statements that enroll a new agent, or approve a pending one with its token. A new agent without a token
 * that approves it is pending.
 * @param known the existing record; a token only changes a pending agent
 * @returns no statements if nothing changes; null if the token is invalid
 * @throws MusterError `pending_full`
 */
export async function enrolStatements(
  context: Context,
  hello: Hello,
  from: { node_id: string; remote_ip: string; now: number },
  known: AgentRow | undefined,
  pending: PendingList,
): Promise<Enrolment | null> {
  const { node_id, now } = from;
  let token: TokenRow | undefined;
  if (hello.token !== null) {
    token = await byHash(context, hello.token);
    if (!token || token.revoked_at !== null || token.expires_at <= now || token.uses_left < 1) return null;
  }
  const approve = token?.approve === 1;
  let name: string | null = known?.name ?? null;
  // The agent is already pending. This token does not approve it, so the token is not consumed.
  if (known && !approve) {
    const standing = { status: known.status, name, tags: fromJson(known.tags) };
    return { statements: [], label: name ?? hello.hostname, standing, announced: true, displaced: null };
  }
  const statements: Statement[] = [];
  if (token)
    statements.push(
      statement(useEnrolmentToken, { id: token.id, now }, { expect: 'changed', else: 'enrolment_token_not_found' }),
    );
  if (approve && name === null) {
    name = await freeName(context, namesFromHostname(token?.name ?? hello.hostname, node_id), node_id);
    statements.push(statement(agentIdTakingName, { name, node_id }, { expect: 'no_row', else: 'name_taken' }));
  }
  let displaced: string | null = null;
  let announced = true;
  const status = approve ? 'approved' : 'pending';
  if (known) {
    if (approve)
      statements.push(
        statement(
          setAgentStatus,
          { node_id, from: 'pending', status, name, now },
          { expect: 'changed', else: 'agent_not_found' },
        ),
      );
  } else {
    if (!approve) {
      const slot = await pending.allocateSlot(from.remote_ip);
      statements.push(...slot.statements);
      displaced = slot.displaced;
    }
    statements.push(
      statement(insertAgent, {
        node_id,
        public_key: hello.public_key,
        name,
        status,
        agent_version: hello.agent_version,
        attributes: toJson(hello.attributes),
        initial_hostname: hello.hostname,
        initial_ip: from.remote_ip,
        remote_ip: from.remote_ip,
        now,
        pin_source: hello.pin_source,
        enrolment_token_id: token?.id ?? null,
        incarnation: context.incarnation,
        instance: hello.instance_id,
      }),
      statement(insertAgentKey, { public_key: hello.public_key, node_id }),
    );
  }
  const tags = token ? fromJson(token.tags) : {};
  for (const [key, value] of Object.entries(tags)) statements.push(statement(putTag, { node_id, key, value }));
  const label = name ?? hello.hostname;
  if (!known || approve) {
    const trust = hello.pin_source === 'first_use' ? '; it trusted the orchestrator key on first use' : '';
    const happening = {
      actor: { type: 'agent', id: node_id, name: label },
      target: { type: 'agent', id: node_id, name: label },
      metadata: {
        hostname: hello.hostname,
        ip: from.remote_ip,
        pin_source: hello.pin_source,
        ...(token ? { enrolment_token_id: token.id } : {}),
      },
    } as const;
    if (approve) {
      const summary = `agent ${label} approved by an enrollment token`;
      statements.push(audited(context, { ...happening, type: 'agent.approved', summary }));
    } else {
      const summary = `agent ${label} is pending approval${trust}`;
      const waits = { ...happening, type: 'agent.pending', summary } as const;
      announced = pending.isReportedSingly(waits);
      if (announced) statements.push(audited(context, waits));
    }
  }
  return { statements, turn: token?.id, label, standing: { status, name, tags }, announced, displaced };
}
