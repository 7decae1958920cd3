# SPDX-License-Identifier: BSD-3-Clause
"""Sites of xccl: read and check site-configs/*/site.yaml, and render everything made from them."""
