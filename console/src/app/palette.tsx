import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { Boxes, Server } from 'lucide-react';
import { Dialog as Radix } from 'radix-ui';
import { useMemo, useState } from 'react';
import { agentsQuery } from '../api/agents.ts';
import { modulesQuery } from '../api/modules/modules.ts';
import { Keys } from '../parts/kbd.tsx';
import { Line } from '../parts/text.tsx';
import { destinations } from './navigation.ts';

const itemClasses =
  'flex h-9 cursor-default items-center gap-2.5 rounded-md px-2.5 text-sm data-[selected=true]:bg-hover';
const groupClasses =
  '[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:py-1.5 [&_[cmdk-group-heading]]:font-medium [&_[cmdk-group-heading]]:text-muted [&_[cmdk-group-heading]]:text-xs';

/** Maximum number of results per type. */
const maxResults = 8;

/** The command palette: finds pages, agents, and modules by name. */
export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState('');
  const navigate = useNavigate();
  const { data: agents } = useQuery(agentsQuery);
  const { data: modules } = useQuery(modulesQuery);
  const query = text.trim().toLowerCase();
  const pages = destinations.filter(({ label }) => label.toLowerCase().includes(query));
  const foundAgents = useMemo(
    () =>
      query === ''
        ? []
        : (agents ?? [])
            .filter(({ name, initial_hostname, node_id }) =>
              `${name ?? ''} ${initial_hostname.slice(0, 256)} ${node_id}`.toLowerCase().includes(query),
            )
            .slice(0, maxResults),
    [agents, query],
  );
  const foundModules =
    query === '' ? [] : (modules ?? []).filter(({ name }) => name.toLowerCase().includes(query)).slice(0, maxResults);
  const go = (to: string, params?: Record<string, string>) => {
    onClose();
    void navigate({ to, params } as never);
  };
  return (
    <Radix.Root open onOpenChange={(open) => !open && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-[oklch(0.15_0.02_260/45%)]" />
        <Radix.Content
          aria-describedby={undefined}
          className="fixed top-[10vh] left-1/2 z-50 w-[min(36rem,94vw)] -translate-x-1/2 overflow-hidden rounded-xl border bg-surface shadow-float outline-none"
        >
          <Radix.Title className="sr-only">Search or go to</Radix.Title>
          <Command shouldFilter={false} loop label="Search or go to">
            <Command.Input
              value={text}
              onValueChange={setText}
              placeholder="Agent, module, or page…"
              className="h-12 w-full border-b bg-transparent px-4 text-base outline-none placeholder:text-muted"
            />
            <Command.List className="max-h-[50vh] overflow-y-auto p-1.5">
              <Command.Empty className="px-3 py-8 text-center text-muted text-sm">
                No results. Search for agents by name, hostname, or id.
              </Command.Empty>
              {foundAgents.length > 0 && (
                <Command.Group heading="Agents" className={groupClasses}>
                  {foundAgents.map(({ node_id, name, initial_hostname }) => (
                    <Command.Item
                      key={node_id}
                      value={`agent ${node_id}`}
                      className={itemClasses}
                      onSelect={() => go('/agents/$agent', { agent: name ?? node_id })}
                    >
                      <Server aria-hidden="true" className="size-4 text-muted" />
                      <Line text={name ?? initial_hostname} />
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
              {foundModules.length > 0 && (
                <Command.Group heading="Modules" className={groupClasses}>
                  {foundModules.map(({ name }) => (
                    <Command.Item
                      key={name}
                      value={`module ${name}`}
                      className={itemClasses}
                      onSelect={() => go('/modules/$module', { module: name })}
                    >
                      <Boxes aria-hidden="true" className="size-4 text-muted" />
                      <Line text={name} />
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
              {pages.length > 0 && (
                <Command.Group heading="Go to" className={groupClasses}>
                  {pages.map(({ path, label, icon: Icon, key }) => (
                    <Command.Item key={path} value={`page ${path}`} className={itemClasses} onSelect={() => go(path)}>
                      <Icon aria-hidden="true" className="size-4 text-muted" />
                      <span className="flex-1">{label}</span>
                      <Keys keys={`g ${key}`} />
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
            </Command.List>
          </Command>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
