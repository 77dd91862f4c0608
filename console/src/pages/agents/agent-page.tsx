import { Page } from '../../parts/page.tsx';

export function AgentPage() {
  return <Page title="Agent">{null}</Page>;
}
