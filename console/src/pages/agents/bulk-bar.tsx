import type { Agent } from '@muster/protocol/http';
import { useNavigate } from '@tanstack/react-router';
import { ChevronDown, Copy, ListChecks, Play, Tag, X } from 'lucide-react';
import { useState } from 'react';
import { rejectAgent } from '../../api/agents.ts';
import { checkNow } from '../../api/drift.ts';
import { runOnAgents } from '../../api/runs.ts';
import { Button, IconButton } from '../../parts/button.tsx';
import { EachDialog } from '../../parts/dialog/each-dialog.tsx';
import { Menu, MenuItem } from '../../parts/dialog/menu.tsx';
import { told, toldProblem } from '../../parts/dialog/toast.tsx';
import { FanOutDialog } from '../../parts/form/fan-out-form.tsx';
import { Text } from '../../parts/text.tsx';
import { calledOf } from './agent-state.ts';
import { ApproveDialog } from './approve-dialog.tsx';
import { TagDialog } from './tag-dialog.tsx';

type Open = 'approve' | 'reject' | 'tag' | 'untag' | 'apply' | 'drift' | null;

/** What can be done with the agents that are chosen. */
export function BulkBar({
  chosen,
  hidden,
  all,
  onClear,
  onFree,
}: {
  readonly chosen: readonly Agent[];
  /** How many of them the filters do not show. */
  readonly hidden: number;
  readonly all: readonly Agent[];
  readonly onClear: () => void;
  /** These are no longer chosen. */
  readonly onFree: (ids: readonly string[]) => void;
}) {
  const [open, setOpen] = useState<Open>(null);
  const [busy, setBusy] = useState(false);
  const navigate = useNavigate();
  const close = () => setOpen(null);
  const approvable = chosen.filter(({ status }) => status !== 'approved');
  const approved = chosen.filter(({ status }) => status === 'approved');
  const rejectable = chosen.filter(({ status }) => status !== 'rejected');
  const node_ids = approved.map(({ node_id }) => node_id);
  const goTo = (run: string) => void navigate({ to: '/runs/$run', params: { run } });
  const plan = async () => {
    setBusy(true);
    try {
      goTo((await runOnAgents({ kind: 'plan', node_ids })).run_id);
    } catch (error) {
      toldProblem(error);
    } finally {
      setBusy(false);
    }
  };
  const copy = async (texts: readonly string[]) => {
    await navigator.clipboard.writeText(texts.join('\n'));
    told(`${texts.length} copied`);
  };
  const notShown = hidden > 0 ? ` ${hidden} of those chosen are not shown: the search or a filter hides them.` : '';
  const icon = 'size-4';
  return (
    <section
      aria-label="Chosen agents"
      className="flex flex-wrap items-center gap-2 rounded-lg border border-accent/40 bg-accent-soft px-3 py-2"
    >
      <div role="status" className="mr-auto font-medium text-sm">
        {chosen.length} chosen{hidden > 0 && <span className="font-normal text-muted"> · {hidden} not shown</span>}
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
          <Button small onClick={() => setOpen('drift')}>
            Check drift
          </Button>
        </>
      )}
      <Button small icon={<Tag aria-hidden="true" className={icon} />} onClick={() => setOpen('tag')}>
        Tag…
      </Button>
      <Menu
        trigger={
          <Button small icon={<ChevronDown aria-hidden="true" className={icon} />}>
            More
          </Button>
        }
      >
        <MenuItem onSelect={() => setOpen('untag')}>Take a tag away…</MenuItem>
        <MenuItem icon={<Copy aria-hidden="true" className={icon} />} onSelect={() => void copy(chosen.map(calledOf))}>
          Copy names
        </MenuItem>
        <MenuItem
          icon={<Copy aria-hidden="true" className={icon} />}
          onSelect={() => void copy(chosen.map(({ node_id }) => node_id))}
        >
          Copy node ids
        </MenuItem>
        <MenuItem danger disabled={rejectable.length === 0} onSelect={() => setOpen('reject')}>
          Reject {rejectable.length}…
        </MenuItem>
      </Menu>
      <IconButton small label="Choose none" icon={<X className={icon} />} onClick={onClear} />

      {open === 'approve' && <ApproveDialog agents={approvable} all={all} onClose={close} onDone={onFree} />}
      {(open === 'tag' || open === 'untag') && <TagDialog agents={chosen} remove={open === 'untag'} onClose={close} />}
      {open === 'reject' && <RejectDialog agents={rejectable} onClose={close} />}
      {open === 'drift' && (
        <EachDialog
          open
          onOpenChange={close}
          title={`Check ${approved.length} ${approved.length === 1 ? 'agent' : 'agents'} for drift`}
          description={`Each machine is compared with what was last applied. Nothing is changed.${notShown}`}
          action={`Check ${approved.length}`}
          done="checked"
          items={itemsOf(approved)}
          act={({ id }) => checkNow(id)}
          onDone={(ids) => told(`${ids.length} checked`)}
        />
      )}
      {open === 'apply' && (
        <FanOutDialog
          open
          onOpenChange={close}
          title={`Apply to ${approved.length} ${approved.length === 1 ? 'agent' : 'agents'}`}
          description={`Each gets what its assignments give it.${notShown}`}
          action={approved.length === 1 ? 'Apply' : `Apply to ${approved.length} agents`}
          count={approved.length}
          onStart={async (options) => goTo((await runOnAgents({ kind: 'apply', node_ids, ...options })).run_id)}
        />
      )}
    </section>
  );
}

const itemsOf = (agents: readonly Agent[]) => agents.map((agent) => ({ id: agent.node_id, name: calledOf(agent) }));

function RejectDialog({ agents, onClose }: { readonly agents: readonly Agent[]; readonly onClose: () => void }) {
  // As they were when it was opened: one after the other becomes rejected while it goes on.
  const [those] = useState(agents);
  return (
    <EachDialog
      open
      danger
      onOpenChange={onClose}
      title={`Reject ${those.length} ${those.length === 1 ? 'agent' : 'agents'}`}
      description="Their links are closed and their running work is cancelled. They can be approved again."
      action={`Reject ${those.length}`}
      done="rejected"
      items={itemsOf(those)}
      act={({ id }) => rejectAgent(id)}
      onDone={(ids) => told(`${ids.length} rejected`)}
    >
      <p className="text-sm">
        <Text
          text={those
            .slice(0, 12)
            .map((agent) => calledOf(agent).slice(0, 64))
            .join(', ')}
          most={1_000}
        />
        {those.length > 12 && ` and ${those.length - 12} more`}
      </p>
    </EachDialog>
  );
}
