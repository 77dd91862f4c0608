import type { Agent } from '@muster/protocol/http';
import type { PickerOption } from '../../parts/form/picker.tsx';
import { byName } from '../assignments/matching.ts';

/** Returns approved agents as picker options. Connected agents come first. */
export const agentOptions = (agents: readonly Agent[]): PickerOption[] =>
  agents
    .filter(({ status }) => status === 'approved')
    .sort((a, b) => Number(b.connected) - Number(a.connected) || byName(a, b))
    .map(({ node_id, name, connected, attributes }) => ({
      value: node_id,
      label: name ?? node_id,
      detail: connected ? (attributes.distro ?? attributes.platform ?? 'connected') : 'offline',
    }));
