import { z } from 'zod';
import { nodeExample } from './agents.ts';
import { nodeParams, pageQuery, queryInteger, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { operatorId } from './operators/operators.ts';

export const terminalStatuses = ['active', 'closed', 'interrupted'] as const;
export type TerminalStatus = (typeof terminalStatuses)[number];

const terminalModes = ['control', 'view'] as const;

const session = z.strictObject({
  session_id: z.string(),
  node_id: z.string(),
  operator_id: z.string(),
  status: z.enum(terminalStatuses).describe('`interrupted`: the orchestrator or the agent was lost'),
  opened_at: unixSeconds,
  closed_at: unixSeconds.nullable(),
  attached: z
    .array(
      z.strictObject({
        operator_id: z.string(),
        username: z.string(),
        mode: z.enum(terminalModes).describe('`control` may type, and `view` only receives output'),
        since: unixSeconds,
      }),
    )
    .describe('connected operators; empty after the end of the session'),
});
export const terminalSessionSchema = session.meta({ id: 'TerminalSession' });
export type TerminalSession = z.infer<typeof session>;
const sessionId = '01KAGZ7Q4W8E2R5T6Y9V0P3A1S';
const sessionExample: TerminalSession = {
  session_id: sessionId,
  node_id: nodeExample,
  operator_id: operatorId,
  status: 'active',
  opened_at: 1795000300,
  closed_at: null,
  attached: [{ operator_id: operatorId, username: 'ada', mode: 'control', since: 1795000301 }],
};

const detail = session.extend({
  end_reason: z.string().nullable().describe('reason why the session ended, for operators; null while it is open'),
  transcript_path: z.string().nullable().describe('address of the transcript; null if there is none'),
  transcript_sha256: z
    .string()
    .nullable()
    .describe('SHA-256 of the asciicast transcript at the end of the session; also in the event `terminal.closed`'),
  transcript_bytes: z.number().int().nullable().describe('size of that transcript in bytes'),
  viewers: z.number().int().describe('number of connections, including the one in control'),
});
export type TerminalSessionDetail = z.infer<typeof detail>;

const connection = z
  .strictObject({
    session_id: z.string(),
    ws_url: z.string().describe('absolute path with a ticket, which is valid for one connection within 30 s'),
  })
  .meta({ id: 'TerminalConnection' });
const connectionExample = {
  session_id: sessionId,
  ws_url: `/api/v1/terminal/session/${sessionId}/ws?ticket=Zm9vYmFyYmF6cXV4`,
};

const frames =
  'Open `ws_url` as a WebSocket without compression. Binary frames of at most 64 KiB contain terminal output and, from a client in control, input. Text frames are JSON. The orchestrator sends `{"type":"resize","cols","rows"}` first and whenever the size changes, and at the end `{"type":"exit","code","signal"}` or `{"type":"error","code","message"}` with an error code; then it closes the connection. A client in control sends `{"type":"resize","cols","rows"}`.';

/** Returns the schema for a number of columns or rows. */
const length = (fallback: number) =>
  queryInteger(1000, fallback)
    .refine((value) => value >= 1, 'must be at least 1')
    .meta({ override: { type: 'integer', pattern: undefined, minimum: 1, maximum: 1000, default: fallback } })
    .optional();
const sessionParams = z.strictObject({ session_id: z.string() });

export const openTerminal = route({
  id: 'openTerminal',
  method: 'POST',
  path: '/terminal/{node_id}',
  tag: 'Terminal',
  summary: 'Open a terminal on an agent',
  description: `Responds when the shell runs. The session is recorded. Without a connection in control, it ends after \`terminals.reattach_secs\`. ${frames}`,
  access: 'operator',
  params: nodeParams,
  query: z.strictObject({
    cols: length(80).describe('number of columns; values above 1000 are read as 1000'),
    rows: length(24).describe('number of rows; values above 1000 are read as 1000'),
    shell: z
      .string()
      .max(256)
      .regex(/^\/[\x21-\x7e]*$/, 'must be an absolute path')
      .optional()
      .describe('absolute path of a shell to use instead of the configured shell, if the agent allows it'),
  }),
  answers: { 200: connection },
  errors: [
    'agent_not_found',
    'agent_offline',
    'agent_not_approved',
    'terminal_at_other_replica',
    'terminal_disabled',
    'terminal_limit',
    'terminal_shell_refused',
    'terminal_failed',
    'agent_timeout',
    'terminal_unrecorded',
  ],
  example: { params: { node_id: nodeExample }, query: { cols: '120', rows: '40' }, answer: connectionExample },
});

export const listTerminals = route({
  id: 'listTerminals',
  method: 'GET',
  path: '/terminal',
  tag: 'Terminal',
  summary: 'List terminal sessions, newest first',
  access: 'operator',
  query: z.strictObject({ status: z.enum(terminalStatuses).optional(), ...pageQuery(100, 1000) }),
  paged: true,
  answers: { 200: z.array(terminalSessionSchema) },
  errors: [],
  example: { query: { status: 'active' }, answer: [sessionExample] },
});

export const getTerminal = route({
  id: 'getTerminal',
  method: 'GET',
  path: '/terminal/session/{session_id}',
  tag: 'Terminal',
  summary: 'Show a terminal session',
  access: 'operator',
  params: sessionParams,
  answers: {
    200: detail.meta({ id: 'TerminalSessionDetail' }),
  },
  errors: ['terminal_not_found'],
  example: {
    params: { session_id: sessionId },
    answer: {
      ...sessionExample,
      end_reason: null,
      transcript_path: `/api/v1/terminal/session/${sessionId}/transcript`,
      transcript_sha256: null,
      transcript_bytes: null,
      viewers: 1,
    },
  },
});

export const closeTerminal = route({
  id: 'closeTerminal',
  method: 'DELETE',
  path: '/terminal/session/{session_id}',
  tag: 'Terminal',
  summary: 'End a terminal session',
  description: 'Also succeeds for a session that has ended. Only admins may end the session of another operator.',
  access: 'operator',
  params: sessionParams,
  answers: { 204: null },
  errors: ['terminal_not_found', 'terminal_of_another', 'terminal_at_other_replica'],
  example: { params: { session_id: sessionId } },
});

export const attachTerminal = route({
  id: 'attachTerminal',
  method: 'POST',
  path: '/terminal/session/{session_id}/attach',
  tag: 'Terminal',
  summary: 'Attach to a terminal session',
  description:
    'With the mode `control`, a connection may type; with `view`, it only receives output. Only one connection is in control: a new one takes over, and the previous one receives `terminal_taken_over` and is closed. Every connection first receives the recent screen. Only admins may attach to the session of another operator. The frames are those of `openTerminal`.',
  access: 'operator',
  params: sessionParams,
  body: z.strictObject({ mode: z.enum(terminalModes) }),
  answers: { 200: connection },
  errors: [
    'terminal_not_found',
    'terminal_of_another',
    'terminal_at_other_replica',
    'terminal_ended',
    'terminal_limit',
  ],
  example: { params: { session_id: sessionId }, body: { mode: 'view' }, answer: connectionExample },
});

export const getTranscript = route({
  id: 'getTranscript',
  method: 'GET',
  path: '/terminal/session/{session_id}/transcript',
  tag: 'Terminal',
  summary: 'Get the transcript of a terminal session',
  description:
    'Returns the raw bytes of the output, or a recording with times as asciicast v2, which terminal players read. In a recording, output that is not UTF-8 is followed by its bytes as base64 in an event of the kind `b`. Only admins may read the transcript of another operator.',
  access: 'operator',
  params: sessionParams,
  query: z.strictObject({ format: z.enum(['raw', 'asciicast']).optional().describe('default: raw') }),
  answers: { 200: z.string() },
  media: { 200: ['application/octet-stream', 'application/x-asciicast'] },
  errors: ['terminal_not_found', 'terminal_of_another'],
  example: { params: { session_id: sessionId }, answer: '$ uptime\r\n' },
});
