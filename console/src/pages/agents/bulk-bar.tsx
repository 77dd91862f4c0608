import type { Agent } from '@muster/protocol/http';
import { useNavigate } from '@tanstack/react-router';
import { Ban, Copy, Ellipsis, ListChecks, Play, RefreshCw, Tag, X } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { loadCode } from '../../api/live/load-code.ts';
import { runOnAgents } from '../../api/runs.ts';
import { Button, IconButton } from '../../parts/button.tsx';
import { countText } from '../../parts/count.ts';
import { Menu, MenuItem } from '../../parts/dialog/menu.tsx';
import { notify, notifyError } from '../../parts/dialog/toast.tsx';
import { useIsPhone } from '../../parts/table/use-drawn-columns.ts';
import { displayName } from './agent-state.ts';
import type { BulkDialog } from './bulk-dialogs.tsx';

// Loads on demand, so that the first rows appear sooner.
const BulkDialogs = lazy(() => loadCode(async () => ({ default: (await import('./bulk-dialogs.tsx')).BulkDialogs })));

const icon = 'size-4';

export function BulkBar({
  chosen,
  hidden,
  all,
  onClear,
  onDeselect,
}: {
  readonly chosen: readonly Agent[];
  /** Number of selected agents that the filters hide. */
  readonly hidden: number;
  readonly all: readonly Agent[];
  readonly onClear: () => void;
  readonly onDeselect: (ids: readonly string[]) => void;
}) {
  const [open, setOpen] = useState<BulkDialog>(null);
  const [busy, setBusy] = useState(false);
  const navigate = useNavigate();
  const isPhone = useIsPhone();
  const approvable = chosen.filter(({ status }) => status !== 'approved');
  const approved = chosen.filter(({ status }) => status === 'approved');
  const node_ids = approved.map(({ node_id }) => node_id);
  const goTo = (run: string) => void navigate({ to: '/runs/$run', params: { run } });
  const plan = async () => {
    setBusy(true);
    try {
      goTo((await runOnAgents({ kind: 'plan', node_ids })).run_id);
    } catch (error) {
      notifyError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section
      aria-label="Selected agents"
      className="flex flex-wrap items-center gap-2 rounded-lg border border-accent/40 bg-accent-soft px-3 py-2"
    >
      <div role="status" className="mr-auto font-medium text-sm">
        {countText(chosen.length)} selected{hidden > 0 && ` · ${countText(hidden)} hidden`}
      </div>
      {approvable.length > 0 && (
        <Button small look="primary" onClick={() => setOpen('approve')}>
          Approve {approvable.length}
        </Button>
      )}
      {approved.length > 0 && (
        <>
          <Button
            small
            busy={busy}
            icon={<ListChecks aria-hidden="true" className={icon} />}
            onClick={() => void plan()}
          >
            Plan
          </Button>
          <Button small icon={<Play aria-hidden="true" className={icon} />} onClick={() => setOpen('apply')}>
            Apply…
          </Button>
          {!isPhone && (
            <Button small icon={<RefreshCw aria-hidden="true" className={icon} />} onClick={() => setOpen('drift')}>
              Check now…
            </Button>
          )}
        </>
      )}
      {!isPhone && (
        <Button small icon={<Tag aria-hidden="true" className={icon} />} onClick={() => setOpen('tag')}>
          Tag…
        </Button>
      )}
      <BulkMenu chosen={chosen} canCheck={approved.length > 0} isPhone={isPhone} onOpen={setOpen} />
      <IconButton small label="Clear selection" icon={<X className={icon} />} onClick={onClear} />
      <Suspense>
        {open !== null && <BulkDialogs {...{ open, chosen, hidden, all, onDeselect }} onClose={() => setOpen(null)} />}
      </Suspense>
    </section>
  );
}

function BulkMenu({
  chosen,
  canCheck,
  isPhone,
  onOpen,
}: {
  readonly chosen: readonly Agent[];
  readonly canCheck: boolean;
  /** Whether the menu has the actions that other screens show as buttons. */
  readonly isPhone: boolean;
  readonly onOpen: (dialog: BulkDialog) => void;
}) {
  const rejectable = chosen.filter(({ status }) => status !== 'rejected');
  const copy = async (texts: readonly string[]) => {
    await navigator.clipboard.writeText(texts.join('\n'));
    notify(`Copied ${texts.length}`);
  };
  return (
    <Menu
      trigger={<IconButton look="plain" small label="More" icon={<Ellipsis aria-hidden="true" className={icon} />} />}
    >
      {isPhone && canCheck && (
        <MenuItem icon={<RefreshCw aria-hidden="true" className={icon} />} onSelect={() => onOpen('drift')}>
          Check now…
        </MenuItem>
      )}
      {isPhone && (
        <MenuItem icon={<Tag aria-hidden="true" className={icon} />} onSelect={() => onOpen('tag')}>
          Tag…
        </MenuItem>
      )}
      <MenuItem icon={<Tag aria-hidden="true" className={icon} />} onSelect={() => onOpen('untag')}>
        Remove a tag…
      </MenuItem>
      <MenuItem icon={<Copy aria-hidden="true" className={icon} />} onSelect={() => void copy(chosen.map(displayName))}>
        Copy names
      </MenuItem>
      <MenuItem
        icon={<Copy aria-hidden="true" className={icon} />}
        onSelect={() => void copy(chosen.map(({ node_id }) => node_id))}
      >
        Copy node IDs
      </MenuItem>
      <MenuItem
        danger
        icon={<Ban aria-hidden="true" className={icon} />}
        disabled={rejectable.length === 0}
        onSelect={() => onOpen('reject')}
      >
        Reject {rejectable.length}…
      </MenuItem>
    </Menu>
  );
}
