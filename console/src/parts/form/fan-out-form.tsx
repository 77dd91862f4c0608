import { ChoiceCards } from './choice-cards.tsx';
import { atOnce, careful, type FanOutDraft, type FanOutFaults, fanOutPreset } from './fan-out.ts';
import { Input, Select } from './field.tsx';

const paces = [
  { value: 'careful', label: 'Careful', detail: 'One agent first, then a quarter at a time', draft: careful },
  { value: 'at_once', label: 'All at once', detail: 'Every agent, regardless of failures', draft: atOnce },
] as const;

/** Input fields for the rollout options: a preset, or individual options. */
export function FanOutForm({
  draft,
  onChange,
  faults,
  hasPace = true,
  hasOffline = true,
}: {
  readonly draft: FanOutDraft;
  readonly onChange: (draft: FanOutDraft) => void;
  readonly faults: FanOutFaults;
  /** Whether to ask for the canary, the batch size, and the maximum number of failures. */
  readonly hasPace?: boolean;
  /** Whether to ask what to do with agents that are offline. */
  readonly hasOffline?: boolean;
}) {
  const change = (part: Partial<FanOutDraft>) => onChange({ ...draft, ...part });
  return (
    <div className="space-y-4">
      {hasPace && <PaceFields {...{ draft, change, faults }} />}
      {hasOffline && <OfflineFields {...{ draft, change, faults }} />}
    </div>
  );
}

interface FieldsProps {
  readonly draft: FanOutDraft;
  readonly change: (part: Partial<FanOutDraft>) => void;
  readonly faults: FanOutFaults;
}

function PaceFields({ draft, change, faults }: FieldsProps) {
  return (
    <>
      <ChoiceCards
        legend="Pace"
        choices={paces}
        value={fanOutPreset(draft)}
        onChange={({ draft: { canary, batch, maxFailures } }) => change({ canary, batch, maxFailures })}
      />
      <div className="grid gap-3 sm:grid-cols-3">
        <Input
          label="Canary"
          inputMode="numeric"
          placeholder="none"
          hint="Number of agents to start with"
          value={draft.canary}
          error={faults.canary}
          onChange={(event) => change({ canary: event.target.value })}
        />
        <Input
          label="At a time"
          placeholder="all"
          hint="A number or a share such as 25%"
          value={draft.batch}
          error={faults.batch}
          onChange={(event) => change({ batch: event.target.value })}
        />
        <Input
          label="Failures allowed"
          inputMode="numeric"
          placeholder="any number"
          hint="Additional failures halt the run"
          value={draft.maxFailures}
          error={faults.maxFailures}
          onChange={(event) => change({ maxFailures: event.target.value })}
        />
      </div>
    </>
  );
}

function OfflineFields({ draft, change, faults }: FieldsProps) {
  return (
    <div className="grid gap-3 sm:grid-cols-3">
      <div className="sm:col-span-2">
        <Select
          label="Agents that are offline"
          value={draft.offline}
          onChange={(event) => change({ offline: event.target.value as FanOutDraft['offline'] })}
        >
          <option value="report">Count as failed</option>
          <option value="queue">Run when they reconnect</option>
        </Select>
      </div>
      {draft.offline === 'queue' && (
        <Input
          label="Wait up to"
          hint="For example 30m, 24h, or 7d"
          value={draft.wait}
          error={faults.wait}
          onChange={(event) => change({ wait: event.target.value })}
        />
      )}
    </div>
  );
}
