# SPDX-License-Identifier: BSD-3-Clause
# One variable for env/xccl.csh (csh has no functions): remember $_xccl_name, then set value $_xccl_i.
eval 'set _xccl_is = $?'$_xccl_name
if ($_xccl_is) then
    eval 'setenv _XCCL_OLD_'$_xccl_name' $'$_xccl_name':q'
    set _xccl_state = "$_xccl_state${_xccl_name}:e "
else
    set _xccl_state = "$_xccl_state${_xccl_name}:u "
endif
set _xccl_value = $_xccl_values[$_xccl_i]:q:s/=//
setenv $_xccl_name "$_xccl_value"
