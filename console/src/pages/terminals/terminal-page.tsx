import { ApiError } from '@muster/protocol/client';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from 'react';
import { agentQuery, useAgentName } from '../../api/agents.ts';
import { loadCode } from '../../api/live/load-code.ts';
import { useOperatorNames } from '../../api/operators.ts';
import { usePerson } from '../../api/sign-in/use-session.ts';
import { openTerminal, type TerminalAddress, terminalQuery } from '../../api/terminals/terminals.ts';
import { StateBadge } from '../../parts/badge.tsx';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Select } from '../../parts/form/field.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, Problem, Skeleton } from '../../parts/states.tsx';
import { Line } from '../../parts/text.tsx';
import { shortDuration, Time, useNow } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { hasTerminalsDisabled, terminalsDisabledText } from '../agents/agent-state.ts';
import { ItemPage, LoadedItem } from '../item-page.tsx';
import { AgentLink, agentWords } from '../links.tsx';
import { wasInControl } from './control-mark.ts';
import { useOpensTerminal } from './opens-terminal.ts';
import { modeOf, secondsOf, statusTones, statusWords } from './session-text.ts';

const LiveTerminal = lazy(async () => ({
  default: (await loadCode(() => import('./live-terminal.tsx'))).LiveTerminal,
}));
const ReplayTerminal = lazy(async () => ({
  default: (await loadCode(() => import('./replay-terminal.tsx'))).ReplayTerminal,
}));

/** The terminal session that `NewTerminalPage` just opened. The session page uses its WebSocket URL. */
let justOpened: TerminalAddress | null = null;

/** Shows an open terminal session, or the recording of a closed one. */
export function TerminalPage() {
  const { session: session_id } = useParams({ strict: false }) as { session: string };
  return <Session key={session_id} session_id={session_id} />;
}

function Session({ session_id }: { readonly session_id: string }) {
  const person = usePerson();
  const { data: session, error, refetch } = useQuery(terminalQuery(session_id));
  const agentName = useAgentName(session?.node_id ?? '');
  const [requestedMode] = useUrlState<string>('mode', '');
  const [address] = useState(() => {
    const mine = justOpened?.session_id === session_id ? justOpened : null;
    justOpened = null;
    return mine;
  });
  /** Decided when the page opens, so that a session that is closed later stays on the screen. */
  const [mode, setMode] = useState<'control' | 'view' | 'replay' | null>(address === null ? null : 'control');
  if (mode === null && session !== undefined)
    setMode(
      session.status === 'active'
        ? modeOf(session, person.operator_id, requestedMode, wasInControl(session_id))
        : 'replay',
    );

  if (error !== null && session === undefined && mode === null)
    return (
      <LoadedItem of="terminal" title="Terminal" query={{ data: undefined, error, refetch }} skeleton={null}>
        {() => null}
      </LoadedItem>
    );
  const content = (): ReactNode => {
    if (mode === null || (mode === 'replay' && session === undefined)) return <Waiting />;
    if (session !== undefined && session.operator_id !== person.operator_id && person.role !== 'admin')
      return (
        <Empty title="You cannot open this session">
          Only the operator who opened it and admins can watch or replay it.
        </Empty>
      );
    if (mode === 'replay' && session !== undefined) {
      if (session.transcript_path === null)
        return (
          <Failure
            title="Recording not available"
            error={new Error('The recording was removed when its retention ended.')}
          />
        );
      return <ReplayTerminal session={session} />;
    }
    return (
      <LiveTerminal
        session_id={session_id}
        mode={mode === 'view' ? 'view' : 'control'}
        wsUrl={address?.ws_url ?? null}
        session={session}
        onReplay={() => void refetch().then(() => setMode('replay'))}
      />
    );
  };
  return (
    <ItemPage
      of="terminal"
      fill
      name={session === undefined ? 'Terminal' : `Terminal on ${agentWords(agentName)}`}
      title={
        session === undefined ? (
          'Terminal'
        ) : (
          <span className="flex min-w-0 gap-1.5">
            Terminal on <AgentLink id={session.node_id} />
          </span>
        )
      }
      subtitle={session === undefined ? undefined : <Facts session={session} />}
    >
      <Suspense fallback={<Waiting />}>{content()}</Suspense>
    </ItemPage>
  );
}

const Waiting = () => (
  <div role="status" aria-label="Loading" className="h-full space-y-2 rounded-lg border bg-surface p-4">
    <Skeleton className="h-3 w-1/3" />
    <Skeleton className="h-3 w-1/2" />
    <Skeleton className="h-3 w-1/4" />
  </div>
);

function Facts({ session }: { readonly session: Parameters<typeof secondsOf>[0] & { end_reason: string | null } }) {
  const operators = useOperatorNames();
  const now = useNow() / 1000;
  return (
    <span className="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-0.5">
      <StateBadge tone={statusTones[session.status]}>{statusWords[session.status]}</StateBadge>
      <span>
        opened by <Line text={operators.get(session.operator_id) ?? session.operator_id} maxLength={40} />,{' '}
        <Time at={session.opened_at} />
      </span>
      <span className="tabular">
        {session.status === 'active' ? 'open for' : 'lasted'} {shortDuration(secondsOf(session, now))}
      </span>
      {session.end_reason !== null && <Line text={session.end_reason} maxLength={120} />}
    </span>
  );
}

const shells = ['', '/bin/bash', '/bin/sh', '/bin/zsh'];

/** Advice by error code. `terminal_disabled` is missing, because its message already includes the reason. */
const remedies: Readonly<Record<string, string>> = {
  agent_not_found: 'Choose another agent.',
  agent_not_approved: 'Approve the agent first.',
  agent_offline: 'Wait until the agent is connected, then try again.',
  agent_timeout: 'The agent may be busy or its connection slow. Try again.',
  terminal_limit: 'End a session that is no longer needed, then try again.',
  terminal_shell_refused: 'Choose the default shell.',
};

/** Opens a terminal session on an agent, then navigates to the session's page. */
export function NewTerminalPage() {
  const { agent } = useParams({ strict: false }) as { agent: string };
  const navigate = useNavigate();
  const [shell, setShell] = useUrlState<string>('shell', '');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const open = async () => {
    setBusy(true);
    setError(null);
    try {
      // Estimated terminal size, for characters of 9 by 22 pixels. The session page corrects it.
      const cols = Math.max(40, Math.min(400, Math.floor(document.documentElement.clientWidth / 9)));
      const rows = Math.max(10, Math.min(200, Math.floor(document.documentElement.clientHeight / 22)));
      const address = await openTerminal(agent, { cols, rows, shell });
      justOpened = address;
      await navigate({
        to: '/terminals/$session' as never,
        params: { session: address.session_id } as never,
        replace: true,
      });
    } catch (thrown) {
      setError(thrown);
      setBusy(false);
    }
  };
  const { data: target } = useQuery(agentQuery(agent));
  const isDisabled = target !== undefined && hasTerminalsDisabled(target);
  const opensAtOnce = useOpensTerminal();
  const isOpened = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: opens once
  useEffect(() => {
    // React runs effects twice in development.
    if (!opensAtOnce || isOpened.current) return;
    isOpened.current = true;
    void open();
  }, [opensAtOnce]);
  const code = error instanceof ApiError ? error.problem.code : '';
  return (
    <ItemPage
      of="terminal"
      name={`Terminal on ${agent}`}
      title={
        <>
          Terminal on <Line text={agent} maxLength={80} />
        </>
      }
    >
      <div className="max-w-lg">
        <Panel>
          <form
            className="space-y-4"
            onSubmit={(event) => {
              event.preventDefault();
              void open();
            }}
          >
            <Select
              label="Shell"
              value={shell}
              onChange={(event) => setShell(event.target.value)}
              hint="Other shells work only if the agent’s configuration allows them."
            >
              {shells.map((each) => (
                <option key={each} value={each}>
                  {each === '' ? 'Default' : each}
                </option>
              ))}
            </Select>
            <p className="text-muted text-sm">
              The output of the session is recorded and can be replayed. If the connection is lost, the session
              continues for a while, and you can rejoin it.
            </p>
            {isDisabled ? <Callout tone="warn" title={terminalsDisabledText} /> : <Problem error={error} />}
            {remedies[code] !== undefined && <p className="text-sm">{remedies[code]}</p>}
            <div className="flex gap-2">
              <Button type="submit" look="primary" busy={busy} disabled={isDisabled} autoFocus>
                Open terminal
              </Button>
              <Link to={'/agents/$agent' as never} params={{ agent } as never} className={buttonClasses('plain')}>
                Back to the agent
              </Link>
            </div>
          </form>
        </Panel>
      </div>
    </ItemPage>
  );
}
