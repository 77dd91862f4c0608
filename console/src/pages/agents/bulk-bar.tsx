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
import { notify, notifyError } from '../../parts/dialog/toast.tsx';
import { FanOutDialog } from '../../parts/form/fan-out-form.tsx';
import { Text } from '../../parts/text.tsx';
import { displayName } from './agent-state.ts';
import { ApproveDialog } from './approve-dialog.tsx';
import { TagDialog } from './tag-dialog.tsx';

type Open = 'approve' | 'reject' | 'tag' | 'untag' | 'apply' | 'drift' | null;

/** Actions on the selected agents. */
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
      notifyError(error);
    } finally {
      setBusy(false);
    }
  };
  const copy = async (texts: readonly string[]) => {
    await navigator.clipboard.writeText(texts.join('\n'));
    notify(`Copied ${texts.length}`);
  };
  const notShown = hidden > 0 ? ` ${hidden} of the selected agents are hidden by filters.` : '';
  const icon = 'size-4';
  return (
    <section
      aria-label="Selected agents"
      className="flex flex-wrap items-center gap-2 rounded-lg border border-accent/40 bg-accent-soft px-3 py-2"
    >
      <div role="status" className="mr-auto font-medium text-sm">
        {chosen.length} selected{hidden > 0 && <span className="font-normal text-muted"> · {hidden} hidden</span>}
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
        <MenuItem onSelect={() => setOpen('untag')}>Remove a tag…</MenuItem>
        <MenuItem
          icon={<Copy aria-hidden="true" className={icon} />}
          onSelect={() => void copy(chosen.map(displayName))}
        >
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
      <IconButton small label="Clear selection" icon={<X className={icon} />} onClick={onClear} />

      {open === 'approve' && <ApproveDialog agents={approvable} all={all} onClose={close} onDone={onDeselect} />}
      {(open === 'tag' || open === 'untag') && <TagDialog agents={chosen} remove={open === 'untag'} onClose={close} />}
      {open === 'reject' && <RejectDialog agents={rejectable} onClose={close} />}
      {open === 'drift' && (
        <EachDialog
          open
          onOpenChange={close}
          title={`Check ${approved.length} ${approved.length === 1 ? 'agent' : 'agents'} for drift`}
          description={`Compares each machine with its last apply. Changes nothing.${notShown}`}
          action={`Check ${approved.length}`}
          done="checked"
          items={itemsOf(approved)}
          act={({ id }) => checkNow(id)}
          onDone={(ids) => notify(`${ids.length} checked`)}
        />
      )}
      {open === 'apply' && (
        <FanOutDialog
          open
          onOpenChange={close}
          title={`Apply to ${approved.length} ${approved.length === 1 ? 'agent' : 'agents'}`}
          description={`Applies the assignments of each agent.${notShown}`}
          action={approved.length === 1 ? 'Apply' : `Apply to ${approved.length} agents`}
          count={approved.length}
          onStart={async (options) => goTo((await runOnAgents({ kind: 'apply', node_ids, ...options })).run_id)}
        />
      )}
    </section>
  );
}

const itemsOf = (agents: readonly Agent[]) => agents.map((agent) => ({ id: agent.node_id, name: displayName(agent) }));

function RejectDialog({ agents, onClose }: { readonly agents: readonly Agent[]; readonly onClose: () => void }) {
  // A snapshot: the selection changes while agents are rejected.
  const [targets] = useState(agents);
  return (
    <EachDialog
      open
      danger
      onOpenChange={onClose}
      title={`Reject ${targets.length} ${targets.length === 1 ? 'agent' : 'agents'}`}
      description="Closes their connections and cancels their operations. You can approve them again."
      action={`Reject ${targets.length}`}
      done="rejected"
      items={itemsOf(targets)}
      act={({ id }) => rejectAgent(id)}
      onDone={(ids) => notify(`${ids.length} rejected`)}
    >
      <p className="text-sm">
        <Text
          text={targets
            .slice(0, 12)
            .map((agent) => displayName(agent).slice(0, 64))
            .join(', ')}
          maxLength={1_000}
        />
        {targets.length > 12 && ` and ${targets.length - 12} more`}
      </p>
    </EachDialog>
  );
}
