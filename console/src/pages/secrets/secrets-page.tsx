import { Page } from '../../parts/page.tsx';

export function SecretsPage() {
  return <Page title="Secrets">{null}</Page>;
}
