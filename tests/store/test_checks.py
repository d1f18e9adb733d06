"""Every CHECK of the schema bites: each has a row here that differs from a valid one in what it forbids."""

from __future__ import annotations

from typing import Final

import asyncpg

from voucherd.db import Pool, Tx, transaction

# One valid row for each table, in the order of their references, as SQL.
VALID: Final[dict[str, dict[str, str]]] = {
    "company": {
        "id": "1", "name": "'Acme'", "country": "'NL'", "vat_number": "'NL12345678'", "spend_order_eur_minor": "NULL",
        "spend_day_eur_minor": "NULL", "approve_from_eur_minor": "NULL",
    },
    "api_key": {"company_id": "1", "state": "0", "prefix": "'vk_live_a'", "hash": "sha256('a')", "scopes": "'{}'"},
    "app_user": {
        "id": "1", "email": "'a@b.example'", "company_id": "1", "role": "'buyer'", "password_hash": "'x'",
        "name": "'Ann'",
    },
    "session": {
        "key": "sha256('t')", "user_id": "1", "state": "0", "csrf": "sha256('c')", "pending": "false",
        "strong_at": "NULL", "flash": "'Done.'", "flash_kind": "'good'", "address": "'::1'", "agent": "'x'",
        "expires_at": "now() + interval '1 day'",
    },
    "totp": {"user_id": "1", "secret": "'x'", "last_step": "0"},
    "recovery_code": {"user_id": "1", "hash": "sha256('r')"},
    "passkey": {
        "id": "1", "user_id": "1", "credential": "'x'", "public_key": "'x'", "sign_count": "0", "name": "'key'",
    },
    "passkey_challenge": {"hash": "sha256('c')", "user_id": "1", "network": "'::/56'", "ends_at": "now()"},
    "account_link": {"hash": "sha256('l')", "user_id": "1", "kind": "'reset'", "ends_at": "now()"},
    "reset_request": {"email": "'a@b.example'"},
    "throttle": {"key": "sha256('t')", "failures": "0"},
    "access_epoch": {"epoch": "1"},
    "brand": {"id": "1", "slug": "'play'", "name": "'Play'"},
    "product": {"id": "1", "slug": "'play-10'", "version_id": "1"},
    "product_version": {
        "id": "1", "product_id": "1", "brand_id": "1", "name": "'Play 10'", "product_type": "'giftcard'",
        "category": "'games'", "redeem_type": "'currency'", "region": "'ww'", "vat_category": "'exempt'",
        "async_delivery": "false", "face_currency": "'EUR'", "face_minor": "1000", "face_min_minor": "NULL",
        "face_max_minor": "NULL", "price_minor": "990", "price_currency": "'EUR'", "fee_variable_e8": "NULL",
        "fee_fixed_minor": "NULL", "redeem_instructions": "NULL", "terms": "NULL", "image_url": "NULL",
    },
    "product_count": {"kind": "'brand'", "slug": "'x'", "count": "0"},
    "product_change": {
        "at": "now()", "product_id": "1", "version_id": "1", "kind": "'price'", "active": "true", "stocked": "false",
    },
    "rate_window": {"key_id": "1", "number": "1", "lent": "5", "before": "5"},
    "idempotency": {
        "company_id": "1", "state": "0", "key": "sha256('k')", "request": "sha256('r')", "running_until": "now()",
    },
    "spend": {
        "company_id": "1", "key_id": "0", "state": "0", "day": "'2026-01-01'", "spent_eur_minor": "5",
    },
    "fx_rate": {"currency": "'XTS'", "day": "'2026-01-01'", "eur_e8": "1", "source": "'test'"},
    "fx_margin": {"from_currency": "'EUR'", "to_currency": "'XTS'", "margin_bp": "150"},
    "price_list": {"id": "1", "name": "'gold'"},
    "price_entry": {
        "list_id": "1", "product_id": "1", "brand_id": "NULL", "discount_bp": "NULL", "price_minor": "900",
        "price_currency": "'EUR'", "fee_variable_e8": "NULL", "fee_fixed_minor": "NULL", "face_currency": "'EUR'",
        "face_minor": "1000", "valid_from": "'2026-01-01'", "valid_until": "'2026-01-31'",
    },
    "worker_seen": {"id": "gen_random_uuid()", "host": "'one'", "pid": "1"},
    "fx_feed": {"problem": "NULL"},
    "price_epoch": {"epoch": "1"},
    "vat_rate": {"country": "'XX'", "valid_from": "'2026-01-01'", "rate_bp": "2100"},
    "supplier": {
        "id": "1", "name": "'wholesaler'", "kind": "'http'", "state": "0", "config": "'{}'", "timeout_s": "20",
        "settle_s": "120", "quote_age_s": "300", "concurrency_max": "8", "price_slack_bp": "100",
        "on_unknown": "'wait'",
    },
    "supplier_health": {"supplier_id": "1", "failures": "0", "quote_error": "'refused'"},
    "quote": {
        "id": "2", "supplier_id": "1", "state": "0", "product_id": "1", "face_minor": "1000", "price_minor": "900",
        "face_to_minor": "2000", "price_to_minor": "1800", "currency": "'EUR'", "fx_e8": "100000000",
    },
    "offer": {
        "supplier_id": "1", "state": "0", "product_id": "1", "face_minor": "1000", "face_to_minor": "2000",
        "sku": "'P10'", "quote_id": "2", "stock": "0", "quoted_at": "now()",
    },
    "offer_epoch": {"epoch": "1"},
    "attempt": {
        "id": "'00000000-0000-0000-0000-000000000001'", "supplier_id": "1", "state": "0", "product_id": "1",
        "face_minor": "1000", "sku": "'P10'", "quote_id": "2", "price_minor": "900", "price_max_minor": "909",
        "count": "1", "urgent": "false", "status": "0", "fence": "1", "worker": "'w'", "lease_until": "now()",
        "settles_at": "now()", "ask_at": "NULL", "ended_at": "NULL", "call_ms": "1", "external_id": "'e'", "codes": "0",
        "spare": "0", "quarantined": "0", "reason": "'r'", "settled_by": "'operator'",
    },
    "quarantined_code": {
        "attempt_id": "'00000000-0000-0000-0000-000000000001'", "place": "0", "sealed": "'x'",
        "blind": "'0123456789abcdef'", "reason": "'known'",
    },
    "lot": {
        "id": "2", "product_id": "1", "face_minor": "1000", "state": "0", "generated": "false", "supplier": "'own'",
        "purchase_minor": "900", "purchase_currency": "'EUR'", "purchase_fx_e8": "100000000", "size": "10",
        "cursor": "5", "attempt_id": "NULL", "external_id": "NULL", "spare": "0",
    },
    "code": {"lot_id": "2", "seq": "0", "sealed": "'x'", "blind": "'0123456789abcdef'"},
    "vault_key": {"version": "1", "fingerprint": "sha256('a')"},
    "wallet": {
        "id": "2", "company_id": "1", "currency": "'EUR'", "state": "0", "balance_minor": "0", "held_minor": "0",
    },
    "wallet_alert": {"wallet_id": "2", "low_minor": "1"},
    "entry": {
        "wallet_id": "2", "seq": "1", "kind": "1", "amount_minor": "100", "vat_minor": "0", "hold_minor": "0",
        "balance_after_minor": "100", "held_after_minor": "0", "order_id": "NULL", "reference": "'r'", "at": "now()",
    },
    "orders": {
        "id": "2", "company_id": "1", "type": "0", "status": "0", "payment_status": "0", "payment_currency": "'EUR'",
        "payment_fx_e8": "100000000", "price_minor": "100", "vat_minor": "21", "charged_minor": "0",
        "refunded_minor": "0", "held_minor": "0", "lines": "10", "lines_finished": "0", "lines_cancelled": "0",
        "created_at": "now()", "expires_at": "now()", "updated_at": "now()", "reference": "'r'",
        "cancelling": "false",
    },
    "approval": {
        "kind": "1", "company_id": "1", "state": "0", "order_id": "2", "amount_minor": "121", "currency": "'EUR'",
        "reference": "NULL", "note": "''", "requested_by": "1", "ends_at": "now()", "status": "0",
        "decided_by": "NULL", "decided_at": "NULL",
    },
    "attempt_line": {
        "attempt_id": "'00000000-0000-0000-0000-000000000001'", "order_id": "2", "line_from": "0", "line_to": "1",
    },
    "order_item": {
        "order_id": "2", "item_no": "0", "version_id": "1", "amount": "10", "first_line": "0", "face_minor": "1000",
        "face_fx_e8": "1", "price_currency": "'EUR'", "price_fx_e8": "1", "price_minor": "10", "vat_minor": "2",
        "turnover_minor": "10", "pay_price_minor": "10", "pay_vat_minor": "2", "pay_turnover_minor": "10",
        "offers": "'{}'",
    },
    "outcome": {
        "order_id": "2", "line_from": "0", "line_to": "1", "lot_id": "2", "seq_from": "0", "at": "now()",
    },
    "waiting": {
        "state": "0", "product_id": "1", "face_minor": "1000", "company_id": "1", "order_id": "2", "line_from": "0",
        "line_to": "1", "not_before": "now()", "deadline_at": "now()",
        "supplier_id": "NULL", "attempt_id": "NULL", "ask_at": "NULL", "rounds": "0",
    },
    "sandbox_purchase": {
        "supplier": "'play'", "reference": "'r'", "outcome": "'finished'", "sku": "'play-10'", "count": "1",
        "price_minor": "900", "price_currency": "'EUR'", "bought_at": "now()", "due_at": "now()",
    },
    "event_mark": {"settled": "1", "seen": "2", "removed": "1", "removed_at": "now()"},
    "webhook": {
        "id": "1", "company_id": "1", "state": "0", "slot": "1", "url": "'https://a.com/'", "description": "''",
        "enabled": "true", "disabled_reason": "NULL", "secret": "'x'", "old_secret": "NULL", "old_until": "NULL",
        "headers": "NULL", "header_names": "'{}'",
    },
    "webhook_queue": {"webhook_id": "1", "failures": "0", "failing_since": "NULL"},
    "webhook_delivery": {
        "webhook_id": "1", "event_id": "1", "type": "'ping'", "url": "NULL", "status": "0", "attempts": "0",
        "tries": "0", "next_at": "now()",
    },
    "webhook_attempt": {
        "webhook_id": "1", "event_id": "1", "number": "1", "sent_at": "now()", "ms": "1", "url": "'u'", "http": "200",
        "error": "NULL", "head": "''", "body": "''",
    },
    "order_webhook": {"order_id": "2", "url": "'https://a.com/'"},
    "line_view": {"order_id": "2", "line": "0", "link_viewed_at": "now()", "voucher_viewed_at": "now()"},
    "order_pin": {"order_id": "2", "hash": "sha256('1234')"},
    "pin_try": {"order_id": "2", "line": "0", "wrong": "1"},
    "webhook_cursor": {"upto": "0"},
    "mail": {"id": "1", "recipients": "'{a@b.example}'", "subject": "'s'", "body": "''", "next_at": "now()"},
    "backup": {"bytes": "1", "seconds": "0.5"},
    "event": {"at": "now()", "company_id": "1", "state": "0", "type": "'ping'", "order_id": "2", "seq": "1"},
    "trail": {
        "actor_kind": "2", "actor": "'key 1'", "action": "'key.revoke'", "subject": "'key 2'", "state": "0",
        "request_id": "'r'", "detail": "'{}'",
    },
    "reveal": {
        "order_id": "2", "company_id": "1", "line_from": "0", "lines": "1", "via": "0", "actor_kind": "2",
    },
    "trail_seal": {
        "book": "'trail'", "block": "1", "first_id": "1", "last_id": "1", "rows": "1", "previous": "sha256('a')",
        "hash": "sha256('b')",
    },
}  # fmt: skip

# A product with a range instead of a face value, and so with a fee instead of a price (OP-51).
RANGE: Final = {
    "face_minor": "NULL", "face_min_minor": "500", "face_max_minor": "5000", "price_minor": "NULL",
    "price_currency": "NULL", "fee_variable_e8": "102000000", "fee_fixed_minor": "10",
}  # fmt: skip
# A discount, or a fee, instead of a fixed price.
OFF: Final = {
    "discount_bp": "100", "price_minor": "NULL", "price_currency": "NULL", "face_currency": "NULL",
    "face_minor": "NULL",
}  # fmt: skip
FEE: Final = OFF | {
    "discount_bp": "NULL", "fee_variable_e8": "1", "fee_fixed_minor": "0", "face_currency": "'EUR'",
}  # fmt: skip
CHARGED: Final = {"charged_minor": "121"}
# What a purchase must say in each of its statuses: calling, asking, unknown, bought, failed.
ASKED: Final = {"ask_at": "now()"}
ENDED: Final = {"ended_at": "now()"}
BY_ATTEMPT: Final = {"attempt_id": "'00000000-0000-0000-0000-000000000001'"}
LONG: Final = "repeat('x', 1001)"
# A correction of a balance that waits for a second person, instead of an order that does.
MONEY: Final = {"kind": "3", "order_id": "NULL", "reference": "'r'"}

# (constraint, what is changed in the valid row).
FORBIDDEN: Final[list[tuple[str, dict[str, str]]]] = [
    ("trail_actor_kind_check", {"actor_kind": "6"}),
    ("trail_actor_check", {"actor": "''"}),
    ("trail_action_check", {"action": "'revoke'"}),
    ("trail_subject_check", {"subject": "''"}),
    ("trail_state_check", {"state": "2"}),
    ("trail_request_id_check", {"request_id": "''"}),
    ("trail_detail_check", {"detail": "'[]'"}),
    ("reveal_line_from_check", {"line_from": "-1"}),
    ("reveal_lines_check", {"lines": "0"}),
    ("reveal_via_check", {"via": "9"}),
    ("reveal_actor_kind_check", {"actor_kind": "6"}),
    ("trail_seal_book_check", {"book": "'order'"}),
    ("trail_seal_block_check", {"block": "0"}),
    ("trail_seal_rows_check", {"rows": "0"}),
    ("trail_seal_previous_check", {"previous": "'x'"}),
    ("trail_seal_hash_check", {"hash": "'x'"}),
    ("trail_seal_in_order", {"first_id": "2"}),
    ("trail_seal_in_order", {"rows": "2"}),
    ("company_name_check", {"name": "''"}),
    ("company_name_check", {"name": LONG}),
    ("company_country_check", {"country": "'nl'"}),
    ("company_vat_number_check", {"vat_number": "'1'"}),
    ("api_key_state_check", {"state": "2"}),
    ("api_key_hash_check", {"hash": "'short'"}),
    ("api_key_description_check", {"description": LONG}),
    ("api_key_rate_limit_check", {"rate_limit": "0"}),
    ("company_spend_order_eur_minor_check", {"spend_order_eur_minor": "0"}),
    ("company_spend_day_eur_minor_check", {"spend_day_eur_minor": "0"}),
    ("api_key_spend_order_eur_minor_check", {"spend_order_eur_minor": "0"}),
    ("api_key_spend_day_eur_minor_check", {"spend_day_eur_minor": "0"}),
    ("rate_window_counts", {"lent": "-1"}),
    ("rate_window_counts", {"before": "-1"}),
    ("idempotency_state_check", {"state": "2"}),
    ("idempotency_key_check", {"key": "'short'"}),
    ("idempotency_request_check", {"request": "'short'"}),
    ("idempotency_same_state", {"order_id": "3"}),
    ("spend_key_id_check", {"key_id": "-1"}),
    ("spend_state_check", {"state": "2"}),
    ("spend_spent_eur_minor_check", {"spent_eur_minor": "-1"}),
    ("wallet_alert_low_minor_check", {"low_minor": "0"}),
    ("app_user_email_check", {"email": "'A@b.example'"}),
    ("app_user_check", {"role": "'admin'"}),
    ("app_user_check", {"role": "'buyer'", "company_id": "NULL"}),
    ("app_user_name_check", {"name": LONG}),
    ("session_key_check", {"key": "'short'"}),
    ("session_state_check", {"state": "2"}),
    ("session_csrf_check", {"csrf": "'short'"}),
    ("session_flash_check", {"flash": f"repeat({LONG}, 3)"}),
    ("session_flash_kind_check", {"flash_kind": "'odd'"}),
    ("session_flash_has_kind", {"flash_kind": "NULL"}),
    ("session_address_check", {"address": LONG}),
    ("session_agent_check", {"agent": f"repeat({LONG}, 3)"}),
    ("session_pending_is_weak", {"pending": "true", "strong_at": "now()"}),
    ("session_lasts", {"expires_at": "now() - interval '1 day'"}),
    ("access_epoch_only_row_check", {"only_row": "false"}),
    ("brand_slug_check", {"slug": "'Play'"}),
    ("brand_slug_check", {"slug": "'play-'"}),
    ("brand_name_check", {"name": "''"}),
    ("product_slug_check", {"slug": "'play--10'"}),
    ("product_version_name_check", {"name": "''"}),
    ("product_version_product_type_check", {"product_type": "'car'"}),
    ("product_version_category_check", {"category": "'Big Games'"}),
    ("product_version_redeem_type_check", {"redeem_type": "'prayer'"}),
    ("product_version_region_check", {"region": "'x'"}),
    ("product_version_vat_category_check", {"vat_category": "'none'"}),
    ("product_version_face_currency_check", {"face_currency": "'eur'"}),
    ("product_version_face_minor_check", {"face_minor": "0"}),
    ("product_version_face_min_minor_check", RANGE | {"face_min_minor": "0"}),
    ("product_version_check", RANGE | {"face_max_minor": "499"}),
    ("product_version_check1", {"face_minor": "NULL"}),
    ("product_version_check1", {"face_min_minor": "500", "face_max_minor": "5000"}),
    ("product_version_check1", RANGE | {"face_max_minor": "NULL"}),
    ("product_version_check2", {"fee_variable_e8": "1", "fee_fixed_minor": "0"}),
    ("product_version_check2", {"price_minor": "NULL", "price_currency": "NULL"}),
    ("product_version_check2", {"price_currency": "NULL"}),
    ("product_version_check2", RANGE | {"fee_fixed_minor": "NULL"}),
    (
        "product_version_check2",
        RANGE
        | {
            "fee_variable_e8": "NULL",
            "fee_fixed_minor": "NULL",
            "price_minor": "1",
            "price_currency": "'EUR'",
        },
    ),
    ("product_version_redeem_instructions_check", {"redeem_instructions": "''"}),
    ("product_version_redeem_instructions_check", {"redeem_instructions": "repeat('x', 4001)"}),
    ("product_version_terms_check", {"terms": "''"}),
    ("product_version_terms_check", {"terms": "repeat('x', 20001)"}),
    ("product_version_image_url_check", {"image_url": "'http://a.example/b.png'"}),
    ("product_version_image_url_check", {"image_url": "'https://' || repeat('x', 500)"}),
    ("product_count_kind_check", {"kind": "'colour'"}),
    ("product_count_count_check", {"count": "-1"}),
    ("product_change_kind_check", {"kind": "'colour'"}),
    ("product_change_check", {"active": "false"}),
    ("product_version_price_minor_check", {"price_minor": "0"}),
    ("product_version_price_currency_check", {"price_currency": "'EURO'"}),
    ("product_version_fee_variable_e8_check", RANGE | {"fee_variable_e8": "0"}),
    ("product_version_fee_fixed_minor_check", RANGE | {"fee_fixed_minor": "-1"}),
    ("fx_rate_currency_check", {"currency": "'xts'"}),
    ("fx_rate_eur_e8_check", {"eur_e8": "0"}),
    ("worker_seen_host_check", {"host": "''"}),
    ("worker_seen_pid_check", {"pid": "0"}),
    ("fx_margin_from_currency_check", {"from_currency": "'eur'"}),
    ("fx_margin_to_currency_check", {"to_currency": "'xts'"}),
    ("fx_margin_margin_bp_check", {"margin_bp": "0"}),
    ("fx_margin_margin_bp_check", {"margin_bp": "5001"}),
    ("fx_margin_of_a_pair", {"to_currency": "'EUR'"}),
    ("price_list_name_check", {"name": "''"}),
    ("price_list_name_check", {"name": LONG}),
    ("price_entry_discount_bp_check", OFF | {"discount_bp": "0"}),
    ("price_entry_discount_bp_check", OFF | {"discount_bp": "10000"}),
    ("price_entry_price_minor_check", {"price_minor": "0"}),
    ("price_entry_price_currency_check", {"price_currency": "'eur'"}),
    ("price_entry_fee_variable_e8_check", FEE | {"fee_variable_e8": "0"}),
    ("price_entry_fee_fixed_minor_check", FEE | {"fee_fixed_minor": "-1"}),
    ("price_entry_face_currency_check", {"face_currency": "'eur'"}),
    ("price_entry_face_minor_check", {"face_minor": "0"}),
    ("price_entry_one_target", {"brand_id": "1"}),
    ("price_entry_one_kind", {"price_minor": "NULL", "price_currency": "NULL", "face_minor": "NULL"}),
    ("price_entry_one_kind", FEE | {"price_minor": "900", "price_currency": "'EUR'", "face_minor": "1000"}),
    ("price_entry_one_kind", {"price_currency": "NULL"}),
    ("price_entry_one_kind", FEE | {"fee_fixed_minor": "NULL"}),
    ("price_entry_agreed_for", {"face_minor": "NULL"}),
    ("price_entry_agreed_for", {"face_currency": "NULL"}),
    ("price_entry_agreed_for", OFF | {"face_currency": "'EUR'"}),
    ("price_entry_agreed_for", FEE | {"face_minor": "1000"}),
    ("price_entry_of_a_product", {"product_id": "NULL"}),
    ("price_entry_of_a_product", FEE | {"product_id": "NULL", "brand_id": "1"}),
    ("price_entry_period", {"valid_until": "'2025-12-31'"}),
    ("fx_feed_only_row_check", {"only_row": "false"}),
    ("fx_feed_problem_check", {"problem": LONG}),
    ("price_epoch_only_row_check", {"only_row": "false"}),
    ("vat_rate_country_check", {"country": "'NLD'"}),
    ("vat_rate_rate_bp_check", {"rate_bp": "10001"}),
    ("lot_check", {"cursor": "11"}),
    ("lot_check", {"cursor": "-1"}),
    ("lot_check1", {"id": "3"}),
    ("lot_generated_in_sandbox", {"generated": "true"}),
    ("lot_generated_in_sandbox", {"id": "3", "state": "1"}),
    ("lot_generated_in_sandbox", BY_ATTEMPT | {"id": "3", "state": "1", "generated": "true"}),
    ("lot_spare_fits", {"spare": "1"}),
    ("lot_spare_fits", BY_ATTEMPT | {"spare": "-1"}),
    ("lot_spare_fits", BY_ATTEMPT | {"spare": "11"}),
    ("lot_external_id_check", BY_ATTEMPT | {"external_id": LONG}),
    ("lot_face_minor_check", {"face_minor": "0"}),
    ("lot_state_check", {"state": "2"}),
    ("lot_supplier_check", {"supplier": "''"}),
    ("lot_purchase_minor_check", {"purchase_minor": "-1"}),
    ("lot_purchase_currency_check", {"purchase_currency": "'€'"}),
    ("lot_purchase_fx_e8_check", {"purchase_fx_e8": "0"}),
    ("lot_size_check", {"size": "0", "cursor": "0"}),
    ("supplier_name_check", {"name": "'The Wholesaler'"}),
    ("supplier_name_check", {"name": "repeat('x', 61)"}),
    ("supplier_kind_check", {"kind": "'pigeon'"}),
    ("supplier_state_check", {"state": "2"}),
    ("supplier_timeout_s_check", {"timeout_s": "0"}),
    ("supplier_timeout_s_check", {"timeout_s": "301"}),
    ("supplier_settle_s_check", {"settle_s": "-1"}),
    ("supplier_settle_s_check", {"settle_s": "86401"}),
    ("supplier_quote_age_s_check", {"quote_age_s": "0"}),
    ("supplier_quote_age_s_check", {"quote_age_s": "86401"}),
    ("supplier_concurrency_max_check", {"concurrency_max": "0"}),
    ("supplier_concurrency_max_check", {"concurrency_max": "1001"}),
    ("supplier_price_slack_bp_check", {"price_slack_bp": "-1"}),
    ("supplier_price_slack_bp_check", {"price_slack_bp": "10001"}),
    ("supplier_on_unknown_check", {"on_unknown": "'pray'"}),
    ("supplier_check", {"kind": "'sandbox'"}),
    ("supplier_health_failures_check", {"failures": "-1"}),
    ("supplier_health_quote_error_check", {"quote_error": LONG}),
    ("quote_face_minor_check", {"face_minor": "0"}),
    ("quote_price_minor_check", {"price_minor": "-1"}),
    ("quote_check", {"face_to_minor": "1000"}),
    ("quote_check1", {"price_to_minor": "899"}),
    ("quote_check2", {"price_to_minor": "NULL"}),
    ("quote_check2", {"face_to_minor": "NULL"}),
    ("quote_currency_check", {"currency": "'eur'"}),
    ("quote_fx_e8_check", {"fx_e8": "0"}),
    ("quote_same_state", {"id": "3"}),
    ("offer_face_minor_check", {"face_minor": "0"}),
    ("offer_check", {"face_to_minor": "1000"}),
    ("offer_sku_check", {"sku": "''"}),
    ("offer_sku_check", {"sku": LONG}),
    ("offer_stock_check", {"stock": "-1"}),
    ("offer_check1", {"quoted_at": "NULL"}),
    ("offer_same_state", {"quote_id": "3"}),
    ("offer_epoch_only_row_check", {"only_row": "false"}),
    ("attempt_face_minor_check", {"face_minor": "0"}),
    ("attempt_price_minor_check", {"price_minor": "-1"}),
    ("attempt_check", {"price_max_minor": "899"}),
    ("attempt_count_check", {"count": "0"}),
    ("attempt_count_check", {"count": "10001"}),
    ("attempt_status_check", ENDED | {"status": "5"}),
    ("attempt_fence_check", {"fence": "0"}),
    ("attempt_worker_check", {"worker": "''"}),
    ("attempt_worker_check", {"worker": LONG}),
    ("attempt_call_ms_check", {"call_ms": "-1"}),
    ("attempt_external_id_check", {"external_id": LONG}),
    ("attempt_codes_check", {"codes": "-1"}),
    ("attempt_check1", {"spare": "1"}),
    ("attempt_check1", {"spare": "-1"}),
    ("attempt_quarantined_check", {"quarantined": "-1"}),
    ("attempt_reason_check", {"reason": LONG}),
    ("attempt_settled_by_check", {"settled_by": "''"}),
    ("attempt_same_state", {"quote_id": "3"}),
    ("attempt_status_fits", ASKED),
    ("attempt_status_fits", ENDED),
    ("attempt_status_fits", {"status": "1"}),
    ("attempt_status_fits", ASKED | ENDED | {"status": "1"}),
    ("attempt_status_fits", ASKED | {"status": "2"}),
    ("attempt_status_fits", ENDED | {"status": "2"}),
    ("attempt_status_fits", {"status": "3"}),
    ("attempt_status_fits", ASKED | ENDED | {"status": "3"}),
    ("attempt_status_fits", {"status": "4"}),
    ("attempt_status_fits", ASKED | ENDED | {"status": "4"}),
    ("attempt_status_fits", ENDED | {"status": "4", "codes": "1"}),
    ("attempt_line_line_from_check", {"line_from": "-1"}),
    ("attempt_line_line_to_check", {"line_to": "10001"}),
    ("attempt_line_check", {"line_to": "0"}),
    ("quarantined_code_place_check", {"place": "-1"}),
    ("quarantined_code_blind_check", {"blind": "'short'"}),
    ("quarantined_code_reason_check", {"reason": "'ugly'"}),
    ("code_seq_check", {"seq": "-1"}),
    ("code_blind_check", {"blind": "'short'"}),
    ("vault_key_version_check", {"version": "0"}),
    ("vault_key_fingerprint_check", {"fingerprint": "'short'"}),
    ("wallet_check", {"id": "3"}),
    ("wallet_state_check", {"state": "2"}),
    ("wallet_currency_check", {"currency": "'eur'"}),
    ("wallet_not_overdrawn", {"balance_minor": "-1"}),
    ("wallet_not_overdrawn", {"balance_minor": "1", "held_minor": "2"}),
    ("wallet_not_overdrawn", {"held_minor": "-1"}),
    ("entry_seq_check", {"seq": "0"}),
    ("entry_kind_check", {"kind": "7"}),
    ("entry_reference_check", {"reference": LONG}),
    ("entry_not_overdrawn", {"balance_after_minor": "-1"}),
    ("entry_not_overdrawn", {"held_after_minor": "101"}),
    ("entry_same_state", {"order_id": "3"}),
    ("entry_kind_fits", {"amount_minor": "0"}),
    ("entry_kind_fits", {"vat_minor": "1"}),
    ("entry_kind_fits", {"reference": "NULL"}),
    ("entry_kind_fits", {"kind": "2", "order_id": "2"}),
    ("entry_kind_fits", {"kind": "2", "amount_minor": "-1"}),
    ("entry_kind_fits", {"kind": "2", "amount_minor": "-1", "vat_minor": "-2", "order_id": "2"}),
    ("entry_kind_fits", {"kind": "2", "amount_minor": "-2", "hold_minor": "-1", "order_id": "2"}),
    ("entry_kind_fits", {"kind": "3", "amount_minor": "-1", "order_id": "2"}),
    ("entry_kind_fits", {"kind": "3", "amount_minor": "1", "vat_minor": "2", "order_id": "2"}),
    ("entry_kind_fits", {"kind": "4", "amount_minor": "1", "hold_minor": "1", "order_id": "2"}),
    ("entry_kind_fits", {"kind": "4", "amount_minor": "0", "hold_minor": "-1", "order_id": "2"}),
    ("entry_kind_fits", {"kind": "5", "amount_minor": "0", "hold_minor": "1", "order_id": "2"}),
    ("entry_kind_fits", {"kind": "6", "reference": "NULL"}),
    ("orders_type_check", {"type": "2"}),
    ("orders_status_check", {"status": "5"}),
    ("orders_payment_status_check", {"payment_status": "4"}),
    ("orders_payment_currency_check", {"payment_currency": "'eur'"}),
    ("orders_payment_fx_e8_check", {"payment_fx_e8": "0"}),
    ("orders_price_minor_check", {"price_minor": "-1"}),
    ("orders_vat_minor_check", {"vat_minor": "-1"}),
    ("orders_held_minor_check", {"status": "1", "held_minor": "-1"}),
    ("orders_lines_check", {"lines": "0"}),
    ("orders_lines_check", {"lines": "10001"}),
    ("orders_reference_check", {"reference": LONG}),
    ("orders_lines_add_up", {"status": "1", "lines_finished": "-1"}),
    ("orders_lines_add_up", {"status": "3", "lines_finished": "6", "lines_cancelled": "5"}),
    ("orders_never_refund_more", CHARGED | {"status": "1", "refunded_minor": "122"}),
    ("orders_never_refund_more", {"status": "1", "charged_minor": "100"}),
    ("orders_status_fits", CHARGED),
    ("orders_status_fits", {"held_minor": "1"}),
    ("orders_status_fits", CHARGED | {"status": "1", "lines_finished": "10"}),
    ("orders_status_fits", CHARGED | {"status": "2", "lines_finished": "9"}),
    ("orders_status_fits", CHARGED | {"status": "2", "lines_finished": "10", "refunded_minor": "1"}),
    ("orders_status_fits", CHARGED | {"status": "3", "lines_finished": "10"}),
    ("orders_status_fits", CHARGED | {"status": "4"}),
    ("orders_downloaded_has_codes", {"downloaded": "true"}),
    ("orders_cancelling_fits", {"cancelling": "true"}),
    ("orders_cancelling_fits", {"cancelling": "true", "status": "4", "lines_cancelled": "10"}),
    ("order_item_item_no_check", {"item_no": "100"}),
    ("order_item_amount_check", {"amount": "0"}),
    ("order_item_amount_check", {"amount": "10001", "first_line": "-1"}),
    ("order_item_check", {"amount": "10000", "first_line": "1"}),
    ("order_item_price_minor_check", {"price_minor": "-1"}),
    ("order_item_vat_minor_check", {"vat_minor": "-1"}),
    ("order_item_turnover_minor_check", {"turnover_minor": "-1"}),
    ("order_item_pay_price_minor_check", {"pay_price_minor": "-1"}),
    ("order_item_pay_vat_minor_check", {"pay_vat_minor": "-1"}),
    ("order_item_pay_turnover_minor_check", {"pay_turnover_minor": "-1"}),
    ("outcome_line_from_check", {"line_from": "-1"}),
    ("outcome_line_to_check", {"line_to": "10001"}),
    ("outcome_seq_from_check", {"seq_from": "-1"}),
    ("outcome_check", {"line_to": "0"}),
    ("outcome_check1", {"seq_from": "NULL"}),
    ("outcome_check1", {"lot_id": "NULL"}),
    ("outcome_same_state", {"lot_id": "3"}),
    ("waiting_state_check", {"state": "2"}),
    ("waiting_check", {"line_to": "0"}),
    ("waiting_same_state", {"order_id": "3"}),
    ("waiting_rounds_check", {"rounds": "-1"}),
    ("waiting_in_one_place", {"supplier_id": "1", "ask_at": "now()"}),
    ("waiting_in_one_place", BY_ATTEMPT | {"supplier_id": "1"}),
    ("waiting_in_one_place", BY_ATTEMPT | {"ask_at": "now()"}),
    ("event_mark_only_row_check", {"only_row": "false"}),
    ("event_mark_in_order", {"removed": "-1"}),
    ("event_mark_in_order", {"removed": "2"}),
    ("event_mark_in_order", {"seen": "0"}),
    ("event_mark_removed_fits", {"removed": "0"}),
    ("event_mark_removed_fits", {"removed_at": "NULL"}),
    ("webhook_state_check", {"state": "2"}),
    ("webhook_slot_check", {"slot": "0"}),
    ("webhook_slot_check", {"slot": "21"}),
    ("webhook_url_check", {"url": "''"}),
    ("webhook_url_check", {"url": "repeat('x', 2001)"}),
    ("webhook_description_check", {"description": LONG}),
    ("webhook_disabled_reason_check", {"enabled": "false", "disabled_reason": "'tired'"}),
    ("webhook_reason_fits", {"disabled_reason": "'gone'"}),
    ("webhook_old_secret_ends", {"old_secret": "'x'"}),
    ("webhook_old_secret_ends", {"old_until": "now()"}),
    ("webhook_headers_named", {"headers": "'x'"}),
    ("webhook_headers_named", {"header_names": "'{x}'"}),
    ("webhook_queue_failures_check", {"failures": "-1", "failing_since": "now()"}),
    ("webhook_queue_failing_fits", {"failures": "1"}),
    ("webhook_queue_failing_fits", {"failing_since": "now()"}),
    ("webhook_delivery_url_check", {"url": "''"}),
    ("webhook_delivery_status_check", {"status": "3", "next_at": "NULL"}),
    ("webhook_delivery_attempts_check", {"attempts": "-1"}),
    ("webhook_delivery_tries_check", {"tries": "-1"}),
    ("webhook_delivery_waits", {"next_at": "NULL"}),
    ("webhook_delivery_waits", {"status": "1"}),
    ("webhook_attempt_number_check", {"number": "0"}),
    ("webhook_attempt_ms_check", {"ms": "-1"}),
    ("webhook_attempt_http_check", {"http": "99"}),
    ("webhook_attempt_error_check", {"http": "NULL", "error": LONG}),
    ("webhook_attempt_head_check", {"head": LONG}),
    ("webhook_attempt_body_check", {"body": LONG}),
    ("webhook_attempt_ended", {"http": "NULL"}),
    ("webhook_attempt_ended", {"error": "'lost'"}),
    ("order_webhook_url_check", {"url": "''"}),
    ("line_view_line_check", {"line": "-1"}),
    ("line_view_in_order", {"voucher_viewed_at": "now() - interval '1 second'"}),
    ("order_pin_hash_check", {"hash": "'1234'"}),
    ("pin_try_line_check", {"line": "-1"}),
    ("pin_try_wrong_check", {"wrong": "0"}),
    ("backup_bytes_check", {"bytes": "0"}),
    ("backup_seconds_check", {"seconds": "-1"}),
    ("webhook_cursor_only_row_check", {"only_row": "false"}),
    ("webhook_cursor_upto_check", {"upto": "-1"}),
    ("mail_recipients_check", {"recipients": "'{}'"}),
    ("mail_subject_check", {"subject": "''"}),
    ("mail_body_check", {"body": "repeat('x', 20001)"}),
    ("mail_tries_check", {"tries": "-1"}),
    ("mail_problem_check", {"problem": LONG}),
    ("mail_over", {"sent_at": "now()"}),
    ("company_approve_from_eur_minor_check", {"approve_from_eur_minor": "0"}),
    ("totp_last_step_check", {"last_step": "-1"}),
    ("recovery_code_hash_check", {"hash": "'short'"}),
    ("passkey_credential_check", {"credential": "''"}),
    ("passkey_public_key_check", {"public_key": "''"}),
    ("passkey_sign_count_check", {"sign_count": "-1"}),
    ("passkey_name_check", {"name": "''"}),
    ("passkey_challenge_hash_check", {"hash": "'short'"}),
    ("passkey_challenge_network_check", {"network": "''"}),
    ("account_link_hash_check", {"hash": "'short'"}),
    ("account_link_kind_check", {"kind": "'gift'"}),
    ("reset_request_email_check", {"email": "''"}),
    ("throttle_key_check", {"key": "'short'"}),
    ("throttle_failures_check", {"failures": "-1"}),
    ("approval_kind_check", MONEY | {"kind": "4"}),
    ("approval_state_check", MONEY | {"state": "2"}),
    ("approval_currency_check", {"currency": "'eur'"}),
    ("approval_reference_check", MONEY | {"reference": "''"}),
    ("approval_note_check", {"note": LONG}),
    ("approval_status_check", {"status": "4", "decided_at": "now()"}),
    ("approval_two_people", {"status": "1", "decided_at": "now()", "decided_by": "1"}),
    ("approval_decided", {"status": "1", "decided_at": "now()"}),
    ("approval_ended", {"decided_at": "now()"}),
    ("approval_subject", {"order_id": "NULL"}),
    ("approval_subject", {"reference": "'r'"}),
    ("approval_same_state", {"state": "1"}),
    ("approval_amount", {"amount_minor": "-1"}),
    ("approval_amount", MONEY | {"amount_minor": "0"}),
    ("event_state_check", {"state": "2", "order_id": "NULL"}),
    ("event_same_state", {"state": "1"}),
    ("event_same_state", {"state": "NULL"}),
    ("sandbox_purchase_supplier_check", {"supplier": "''"}),
    ("sandbox_purchase_reference_check", {"reference": "''"}),
    ("sandbox_purchase_outcome_check", {"outcome": "''"}),
    ("sandbox_purchase_sku_check", {"sku": "''"}),
    ("sandbox_purchase_count_check", {"count": "0"}),
    ("sandbox_purchase_price_minor_check", {"price_minor": "0"}),
    ("sandbox_purchase_price_currency_check", {"price_currency": "'eur'"}),
    ("sandbox_purchase_due_check", {"due_at": "now() - interval '1 second'"}),
]

# A state that is neither live nor sandbox is no id's lowest bit either, and that check speaks first; so does the one
# that spare codes are some of all codes, of which there are never fewer than none.
SPOKEN_FOR: Final = {
    "attempt_codes_check": "attempt_check1",
    "lot_state_check": "lot_check1",
    "wallet_state_check": "wallet_check",
    "waiting_state_check": "waiting_same_state",
}


async def put(tx: Tx, table: str, changes: dict[str, str]) -> None:
    """Insert the table's valid row with these changes."""
    row = VALID[table] | changes
    names, values = ", ".join(row), ", ".join(row.values())
    await tx.execute(f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE VALUES ({values})")  # noqa: S608 - Ours.


async def ground(tx: Tx) -> None:
    """Insert every table's valid row: whatever is refused after that is refused for its change alone."""
    await tx.execute("DELETE FROM access_epoch")
    await tx.execute("DELETE FROM offer_epoch")
    await tx.execute("DELETE FROM event_mark")
    await tx.execute("DELETE FROM webhook_cursor")
    await tx.execute("DELETE FROM price_epoch")
    await tx.execute("DELETE FROM fx_feed")
    for table in VALID:
        await put(tx, table, {})


def table_of(constraint: str) -> str:
    """The table that a constraint's name begins with."""
    return max((table for table in VALID if constraint.startswith(table + "_")), key=len)


async def verdict(tx: Tx, constraint: str, changes: dict[str, str]) -> str:
    """The name of the constraint that refused the row, or what happened instead."""
    try:
        async with tx.transaction():
            await put(tx, table_of(constraint), changes)
    except asyncpg.CheckViolationError as refused:
        return str(refused.constraint_name)
    except asyncpg.IntegrityConstraintViolationError as other:
        return f"not by a check: {other}"
    return "accepted"


async def test_every_check_refuses_what_it_forbids(pool: Pool) -> None:
    """Design, invariants 1 to 3 and 5: the database itself refuses what must never be."""
    async with transaction(pool) as tx:
        # The triggers on a new wallet speak before its check, and on a wallet in use it can't be reached at all.
        await tx.execute("ALTER TABLE wallet DISABLE TRIGGER wallet_starts_empty")
        await ground(tx)
        wrong = [
            (constraint, changes, found)
            for constraint, changes in FORBIDDEN
            if (found := await verdict(tx, constraint, changes)) != SPOKEN_FOR.get(constraint, constraint)
        ]

    assert wrong == []


async def test_no_check_is_without_a_row_that_it_refuses(pool: Pool) -> None:
    """A guard that was never seen to bite may be asleep."""
    rows = await pool.fetch(
        "SELECT conname FROM pg_constraint WHERE contype = 'c' AND connamespace = current_schema()::regnamespace"
    )

    assert {row["conname"] for row in rows} == {constraint for constraint, _ in FORBIDDEN}
