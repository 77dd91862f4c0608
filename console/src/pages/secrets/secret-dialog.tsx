import type { Agent, Secret } from '@muster/protocol/http';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Dices, Eye, EyeOff } from 'lucide-react';
import { useMemo, useState } from 'react';
import { agentsQuery, useSelectorVocabulary } from '../../api/agents.ts';
import { matchesQuery } from '../../api/matches.ts';
import { changeSecret, storeSecret } from '../../api/secrets.ts';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Code, CopyButton } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Checkbox, Input, Select, TextArea } from '../../parts/form/field.tsx';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { messageOf, Problem } from '../../parts/states.tsx';
import { Line } from '../../parts/text.tsx';
import {
  dayOf,
  endOfDay,
  isPlainHttp,
  kindOf,
  nameFault,
  type RestrictionKind,
  randomValue,
  restrictionOf,
} from './secret-form.ts';

const dots = '••••••••••••';

/** Creates or changes a secret. A stored value is never shown. */
export function SecretDialog({ secret, onClose }: { readonly secret: Secret | null; readonly onClose: () => void }) {
  const [name, setName] = useState(secret?.name ?? '');
  const [description, setDescription] = useState(secret?.description ?? '');
  const [value, setValue] = useState('');
  const [replaces, setReplaces] = useState(secret === null);
  const [day, setDay] = useState(dayOf(secret?.expires_at ?? null));
  const [kind, setKind] = useState<RestrictionKind>(kindOf(secret?.restriction ?? null));
  const [agents, setAgents] = useState<readonly string[]>(secret?.restriction?.node_ids ?? []);
  const [selector, setSelector] = useState(secret?.restriction?.tags ?? '');
  const fault = nameFault(name);
  const save = useMutation({
    mutationFn: () => {
      const body = {
        description,
        expires_at: endOfDay(day, secret?.expires_at ?? null),
        restriction: restrictionOf(kind, agents, selector),
        value: replaces ? value : null,
      };
      return secret === null ? storeSecret(name, body) : changeSecret(secret.name, body);
    },
    onSuccess: () => {
      notify(secret === null ? `Saved ${name}` : `Changed ${secret.name}`);
      onClose();
    },
  });
  const isUnencrypted = isPlainHttp(window.location.protocol, window.location.hostname);
  const isTyped = value !== '' || (secret === null && (name !== '' || description !== ''));
  return (
    <Dialog
      open
      // Escape must not discard typed values.
      lasting={isTyped}
      onOpenChange={(open) => !open && onClose()}
      title={secret === null ? 'New secret' : `Change ${secret.name}`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            form="secret"
            look="primary"
            busy={save.isPending}
            disabled={name === '' || fault !== null || (replaces && value === '')}
          >
            {secret === null ? 'Save secret' : 'Save'}
          </Button>
        </>
      }
    >
      <form
        id="secret"
        className="space-y-4"
        autoComplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <Problem error={save.error} />
        {isUnencrypted && (
          <Callout tone="warn" title="This page uses plain HTTP">
            The value would be sent unencrypted, so the orchestrator refuses it. Open the console over HTTPS.
          </Callout>
        )}
        {secret === null ? (
          <Input
            label="Name"
            required
            autoFocus
            className="font-mono"
            placeholder="db_password"
            value={name}
            error={fault}
            onChange={(event) => setName(event.target.value)}
            hint={`Reference in modules: \${{ secrets.${name === '' || fault !== null ? 'NAME' : name} }}`}
          />
        ) : (
          <div>
            <p className="mb-1 font-medium text-sm">Reference in modules</p>
            <Code text={`\${{ secrets.${secret.name} }}`} />
          </div>
        )}
        <Input
          label="Description"
          value={description}
          maxLength={1024}
          onChange={(event) => setDescription(event.target.value)}
          hint="What the secret is for, and where it comes from."
        />
        {secret !== null && (
          <Checkbox
            label="Replace the value"
            hint="The stored value cannot be shown."
            checked={replaces}
            onChange={(event) => {
              setReplaces(event.target.checked);
              setValue('');
            }}
          />
        )}
        {replaces && <ValueField value={value} onChange={setValue} />}
        <Input
          label="Expires at the end of"
          type="date"
          max="9999-12-31"
          value={day}
          onChange={(event) => setDay(event.target.value)}
          hint={
            day === ''
              ? 'Never expires. If you set a date, you are notified 30 days before.'
              : 'Modules cannot use the secret after this date.'
          }
        />
        <Restriction
          kind={kind}
          onKind={setKind}
          agents={agents}
          onAgents={setAgents}
          selector={selector}
          onSelector={setSelector}
        />
      </form>
    </Dialog>
  );
}

/** A masked text area, because keys have several lines. */
function ValueField({ value, onChange }: { readonly value: string; readonly onChange: (value: string) => void }) {
  const [shown, setShown] = useState(false);
  return (
    <div>
      <TextArea
        label="Value"
        required
        rows={shown ? 4 : 2}
        autoComplete="off"
        className={shown ? 'font-mono text-xs' : 'font-mono text-xs [-webkit-text-security:disc]'}
        placeholder={dots}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        hint="Stored encrypted and never shown again. Line breaks are preserved."
      />
      <div className="mt-1 flex flex-wrap items-center gap-1">
        <Button
          small
          look="quiet"
          icon={shown ? <EyeOff className="size-3.5" /> : <Eye className="size-3.5" />}
          aria-pressed={shown}
          onClick={() => setShown(!shown)}
        >
          {shown ? 'Hide' : 'Show'}
        </Button>
        <Button
          small
          look="quiet"
          icon={<Dices className="size-3.5" />}
          onClick={() => onChange(randomValue((bytes) => crypto.getRandomValues(bytes)))}
        >
          Generate
        </Button>
        {value !== '' && <CopyButton text={value} label="Copy the value" />}
      </div>
    </div>
  );
}

function Restriction({
  kind,
  onKind,
  agents,
  onAgents,
  selector,
  onSelector,
}: {
  readonly kind: RestrictionKind;
  readonly onKind: (kind: RestrictionKind) => void;
  readonly agents: readonly string[];
  readonly onAgents: (agents: readonly string[]) => void;
  readonly selector: string;
  readonly onSelector: (selector: string) => void;
}) {
  const vocabulary = useSelectorVocabulary();
  const withSelector = kind === 'selector' || kind === 'both';
  const matches = useQuery({ ...matchesQuery(selector), enabled: withSelector && selector.trim() !== '' });
  return (
    <fieldset className="space-y-3">
      <Select label="Allowed agents" value={kind} onChange={(event) => onKind(event.target.value as RestrictionKind)}>
        <option value="any">Any approved agent</option>
        <option value="agents">Only selected agents</option>
        <option value="selector">Only agents that match a selector</option>
        <option value="both">Selected agents that match a selector</option>
      </Select>
      {(kind === 'agents' || kind === 'both') && <AgentChoice chosen={agents} onChange={onAgents} />}
      {withSelector && (
        <SelectorInput
          label="Selector"
          value={selector}
          onChange={onSelector}
          vocabulary={vocabulary}
          hint={
            selector.trim() === ''
              ? 'An empty selector matches no agent.'
              : matches.isError
                ? messageOf(matches.error)
                : matches.data === undefined
                  ? 'Looking for agents…'
                  : `Matches ${matches.data.length} ${matches.data.length === 1 ? 'agent' : 'agents'} now, and any that match later.`
          }
        />
      )}
    </fieldset>
  );
}

/** Maximum number of unselected agents in the list. */
const maxOffered = 50;

function AgentChoice({
  chosen,
  onChange,
}: {
  readonly chosen: readonly string[];
  readonly onChange: (agents: readonly string[]) => void;
}) {
  const { data } = useQuery(agentsQuery);
  const [text, setText] = useState('');
  const options = useMemo(() => agentOptions(data ?? [], chosen, text), [data, chosen, text]);
  return (
    <div>
      <Input
        label="Agents"
        type="search"
        placeholder="Find by name, hostname or id"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') event.preventDefault();
        }}
        hint={
          chosen.length === 0
            ? 'Without selected agents, no agent can use the secret.'
            : `${chosen.length} ${chosen.length === 1 ? 'agent' : 'agents'} selected.`
        }
      />
      <ul
        className="mt-2 max-h-40 space-y-1 overflow-y-auto rounded-md border p-2"
        aria-label="Available agents"
        tabIndex={-1}
      >
        {options.map(({ node_id, name, initial_hostname }) => (
          <li key={node_id}>
            <Checkbox
              label={<Line text={name ?? initial_hostname} maxLength={80} />}
              checked={chosen.includes(node_id)}
              onChange={(event) =>
                onChange(event.target.checked ? [...chosen, node_id] : chosen.filter((id) => id !== node_id))
              }
            />
          </li>
        ))}
        {options.length === 0 && <li className="text-muted text-sm">No matching approved agents.</li>}
      </ul>
    </div>
  );
}

type AgentOption = Pick<Agent, 'node_id' | 'name' | 'initial_hostname'>;

/** Selected agents first, including removed ones, then approved agents that match the text. */
function agentOptions(agents: readonly Agent[], chosen: readonly string[], text: string): readonly AgentOption[] {
  const byId = new Map(agents.map((agent) => [agent.node_id, agent]));
  const first = chosen.map((id) => byId.get(id) ?? { node_id: id, name: null, initial_hostname: id });
  const wanted = text.trim().toLowerCase();
  const others = agents.filter(
    ({ node_id, name, initial_hostname, status }) =>
      status === 'approved' &&
      !chosen.includes(node_id) &&
      `${name ?? ''} ${initial_hostname.slice(0, 256)} ${node_id}`.toLowerCase().includes(wanted),
  );
  return [...first, ...others.slice(0, maxOffered)];
}
