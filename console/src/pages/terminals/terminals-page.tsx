import type { TerminalSession } from '@muster/protocol/http';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { SquareTerminal } from 'lucide-react';
import { useCallback, useMemo, useState } from 'react';
import { useAgentNames } from '../../api/agents.ts';
import { useOperatorNames } from '../../api/operators.ts';
import { usePerson } from '../../api/sign-in/use-session.ts';
import { closeTerminal, terminalsQuery } from '../../api/terminals/terminals.ts';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Empty } from '../../parts/states.tsx';
import { containsText, type FilterTexts, useFilterValues } from '../../parts/table/filters.tsx';
import { ListPage } from '../../parts/table/list-page.tsx';
import { Line } from '../../parts/text.tsx';
import { useNow } from '../../parts/time.tsx';
import { OpenTerminalDialog } from './open-terminal-dialog.tsx';
import { statusWords } from './session-text.ts';
import { terminalColumns } from './terminal-columns.tsx';

const statuses = (['active', 'closed', 'interrupted'] as const).map((value) => ({ value, label: statusWords[value] }));

const filters = [
  { name: 'q', label: 'Search', placeholder: 'Search by agent or operator' },
  { name: 'status', label: 'Status', any: 'Any status', options: statuses },
] as const;

export function TerminalsPage() {
  const person = usePerson();
  const navigate = useNavigate();
  const agents = useAgentNames();
  const operators = useOperatorNames();
  const now = Math.floor(useNow() / 1000);
  const { status } = useFilterValues(filters);
  const query = useInfiniteQuery(terminalsQuery(statuses.find(({ value }) => value === status)?.value ?? ''));
  const rows = useMemo(() => query.data?.pages.flat(), [query.data]);
  const matches = useCallback(
    ({ node_id, operator_id, session_id }: TerminalSession, { q }: FilterTexts) =>
      containsText(q, agents.get(node_id), operators.get(operator_id), session_id, node_id),
    [agents, operators],
  );
  const [isOpening, setOpening] = useState(false);
  const [ending, setEnding] = useState<TerminalSession | null>(null);
  return (
    <ListPage
      title="Terminals"
      description="Shell sessions on machines. Join open sessions, replay ended ones."
      actions={
        <Button
          look="primary"
          icon={<SquareTerminal aria-hidden="true" className="size-4" />}
          onClick={() => setOpening(true)}
        >
          Open terminal…
        </Button>
      }
      label="Terminal sessions"
      query={query}
      rows={rows}
      filters={filters}
      matches={matches}
      columns={terminalColumns({
        ...{ operators, now, onEnd: setEnding },
        mayJoin: ({ operator_id }) => operator_id === person.operator_id || person.role === 'admin',
      })}
      rowKey={({ session_id }) => session_id}
      onOpen={({ session_id }) =>
        void navigate({ to: '/terminals/$session' as never, params: { session: session_id } as never })
      }
      noMatch="No matching sessions"
      empty={
        <Empty
          title="No terminal sessions yet"
          icon={<SquareTerminal />}
          action={<Button onClick={() => setOpening(true)}>Open terminal…</Button>}
        >
          A terminal is a recorded shell on a machine whose agent allows it: remote_terminal.enabled in its
          configuration.
        </Empty>
      }
    >
      {isOpening && <OpenTerminalDialog onClose={() => setOpening(false)} />}
      <Confirm
        open={ending !== null}
        onOpenChange={(open) => !open && setEnding(null)}
        title="End this session?"
        action="End session"
        onConfirm={async () => {
          if (ending !== null) await closeTerminal(ending.session_id);
        }}
      >
        This ends its shell on <Line text={agents.get(ending?.node_id ?? '') ?? ''} /> and all programs in it. The
        recording is kept.
      </Confirm>
    </ListPage>
  );
}
